// SPDX-License-Identifier: BSD-3-Clause
// session_split.cc - sends packets to a gate by the bearer, group or flow of the rule found for
// them.
//
// in: 1   out: by bearer, group or flow   drops: session_gone, no_match
// state: sessions, shared, editable live
#include "core/module/register.h"
#include "modules/common/item_syntax.h"
#include "modules/session/session_commands.h"
#include "modules/session/session_gates.h"
#include "modules/session/session_reasons.h"

namespace batchplane {
namespace {

class SessionSplit final : public Module {
 public:
  explicit SessionSplit(const Args& args) : commands_(args), gates_(args) {
    commands_.table().note_asking_heads();
  }

  uint32_t link(uint32_t connected) override { return n_gates_ = connected; }

  void classify(Context& ctx, Batch& batch) noexcept {
    const session::RuleTables& tables = commands_.table().rules();
    const uint32_t n = batch.size_pkts;
    tables.prefetch_heads(batch);
    for (uint32_t i = 0; i < n; ++i) {
      ctx.gates[i] = 0;
      const session::RuleHead* const rule = tables.find_head(batch[i]->mark());
      if (rule == nullptr) [[unlikely]] {
        ctx.drop(batch, i, session::kSessionGone);
        continue;
      }
      gates_.choose(ctx, batch, i, *rule, n_gates_);
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    return commands_.run(verb, args);
  }
  [[nodiscard]] Value show() const override { return commands_.show(); }
  [[nodiscard]] Dict saved_params() const override { return commands_.saved_params(); }

 private:
  session::SessionCommands commands_;
  const session::SessionGates gates_;
  uint32_t n_gates_ = 1;
};

const Register<SessionSplit> kSessionSplit{{
    .kind = "session_split",
    .state = StateOf::kShared,
    .help = "Sends packets of mobile users on by bearer, group or flow.",
    .params = joined(session::session_params(),
                     {session::gate_by_spec("bearer"), session::bearers_spec()}),
    .drops = {&session::kSessionGone, &reason::kNoMatch},
    .notes = session::kSessionNotes,
}};

}  // namespace
}  // namespace batchplane
