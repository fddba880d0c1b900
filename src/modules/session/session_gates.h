// SPDX-License-Identifier: BSD-3-Clause
// session_gates.h - chooses the output gate from a packet's rule: by bearer, by group, or by both.
#pragma once

#include <string>

#include "core/module/module.h"
#include "modules/headers/shared_reasons.h"
#include "modules/session/session_rules.h"

namespace batchplane::session {

class SessionGates {
 public:
  enum class By : uint8_t { kNothing, kBearer, kGroup, kFlow };

  explicit SessionGates(const Args& args)
      : by_(by_of(args.string("by"))), bearers_(args.u32("bearers")) {}

  [[nodiscard]] bool needs_heads() const { return by_ != By::kNothing; }

  // Sends packet i to its rule's gate, or drops it.
  void choose(Context& ctx, Batch& batch, uint32_t i, const RuleHead& rule,
              uint32_t n_gates) const noexcept {
    uint32_t gate = 0;
    switch (by_) {
      case By::kNothing:
        return;
      case By::kBearer:
        gate = rule.bearer;
        break;
      case By::kGroup:
        gate = rule.group;
        break;
      case By::kFlow:
        gate = rule.group * bearers_ * 2 + rule.bearer * 2 + (rule.is(Rule::kUplink) ? 1 : 0);
        break;
    }
    if (gate >= n_gates) [[unlikely]] {
      ctx.drop(batch, i, reason::kNoMatch);
      return;
    }
    ctx.gates[i] = static_cast<GateIndex>(gate);
  }

 private:
  static By by_of(const std::string& name) {
    if (name == "bearer") return By::kBearer;
    if (name == "group") return By::kGroup;
    return name == "flow" ? By::kFlow : By::kNothing;
  }

  By by_;
  uint32_t bearers_;
};

inline ParamSpec gate_by_spec(const char* missing = "none") {
  return {.name = "by",
          .type = ParamType::kString,
          .default_value = missing,
          .help =
              "the gate of a packet: its rule's bearer, its session's group, or flow = 2 x "
              "(group x bearers + bearer) + 1 for uplink; none = gate 0",
          .choices = {"none", "bearer", "group", "flow"}};
}
inline ParamSpec bearers_spec() {
  return {.name = "bearers",
          .type = ParamType::kInt,
          .default_value = 1,
          .help = "by flow: bearers of each group",
          .min = 1,
          .max = 4096};
}

}  // namespace batchplane::session
