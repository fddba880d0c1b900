// SPDX-License-Identifier: BSD-3-Clause
// flow_rule.h - the number of a packet's flow, by what its users choose. The worker that sends reads the packet.
#pragma once

#include <string>
#include <vector>

#include "core/module/args.h"
#include "core/packet/packet.h"

namespace batchplane {

class FlowRule {
 public:
  explicit FlowRule(const Args& args);

  // 0 where a packet has none, and for mark 0. A mark's generation stands above kMarkFlowBits.
  [[nodiscard]] uint32_t number_of(Packet& pkt) const noexcept;

  [[nodiscard]] bool is_by_mark() const { return by_ == By::kMark; }

 private:
  enum class By : uint8_t { kMark, kDscp, kVrf, kInterface, kVlan, kQfi, kHash };

  By by_;
  uint32_t inner_vlans_;
  uint32_t hash_flows_;
};

std::vector<ParamSpec> flow_rule_params();

}  // namespace batchplane
