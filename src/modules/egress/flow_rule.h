// SPDX-License-Identifier: BSD-3-Clause
// flow_rule.h - maps a packet to its flow number by the rule configured. Runs on the sending
// worker.
#pragma once

#include <string>
#include <vector>

#include "core/module/args.h"
#include "core/packet/packet.h"

namespace batchplane {

class FlowRule {
 public:
  explicit FlowRule(const Args& args);

  // Returns 0 if the packet has none, and for mark 0. A mark's generation is in the bits above
  // kMarkFlowBits.
  [[nodiscard]] uint32_t number_of(Packet& pkt) const noexcept;

  bool operator==(const FlowRule&) const = default;
  [[nodiscard]] bool is_by_mark() const { return by_ == By::kMark; }

 private:
  enum class By : uint8_t { kMark, kDscp, kVrf, kInterface, kVlan, kQfi, kHash };

  By by_;
  uint32_t inner_vlans_;
  uint32_t hash_flows_;
};

std::vector<ParamSpec> flow_rule_params();

}  // namespace batchplane
