// SPDX-License-Identifier: BSD-3-Clause
// mark_split.cc - sends each packet to the gate that its mark names.
//
// in: 1   out: by mark   drops: no_match   state: none
#include "core/module/register.h"
#include "modules/common/rule_table.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

class MarkSplit final : public Module {
 public:
  explicit MarkSplit(const Args& args)
      : first_(args.u32("first")), default_gate_(default_gate_of(args)) {}

  uint32_t link(uint32_t connected) override {
    return n_gates_ = gates_for(connected, 0, default_gate_);
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      const uint32_t gate = batch[i]->mark() - first_;  // wraps for marks below first_
      ctx.gates[i] = static_cast<GateIndex>(gate < n_gates_ ? gate : default_gate_);
      if (gate >= n_gates_ && default_gate_ == kNoDefaultGate) [[unlikely]] {
        ctx.gates[i] = 0;
        ctx.drop(batch, i, reason::kNoMatch);
      }
    }
  }

 private:
  const uint32_t first_;
  const uint32_t default_gate_;
  uint32_t n_gates_ = 1;
};

const Register<MarkSplit> kMarkSplit{{
    .kind = "mark_split",
    .state = StateOf::kNone,
    .help = "Sends each packet to the gate that its mark names.",
    .params = {{.name = "first",
                .type = ParamType::kInt,
                .default_value = 0,
                .help = "the mark that goes to gate 0; the next one goes to gate 1",
                .min = 0,
                .max = 4294967295.0},
               default_gate_spec()},
    .drops = {&reason::kNoMatch},
    .notes = "Marks are set by set_meta and acl. A packet without one has the mark 0.",
}};

}  // namespace
}  // namespace batchplane
