// SPDX-License-Identifier: BSD-3-Clause
#include "core/module/dead_end.h"

#include "core/module/register.h"

namespace batchplane {
namespace {

const DropReason kUnconnectedGate{"unconnected_gate", "a splitter chose a gate that leads nowhere",
                                  "connect the gate, or mend the table that points to it"};

class DeadEnd final : public Module {
 public:
  void consume(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) ctx.drop(batch, i, kUnconnectedGate);
  }
};

ModuleInfo make_info() {
  ModuleInfo info{
      .kind = "dead_end", .state = StateOf::kNone, .help = "Drops what unconnected gates send."};
  info.shape = Shape::kTerminal;
  info.drops = {&kUnconnectedGate};
  info.run = &run_plain<DeadEnd>;
  return info;
}

}  // namespace

const ModuleInfo& dead_end_info() {
  static const ModuleInfo info = make_info();
  return info;
}

std::unique_ptr<Module> make_dead_end() { return std::make_unique<DeadEnd>(); }

}  // namespace batchplane
