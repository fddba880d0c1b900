// SPDX-License-Identifier: BSD-3-Clause
// flow_number.h - parses flow numbers: a number, or a pair of VLANs.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/value.h"

namespace batchplane {

inline constexpr uint32_t kVlans = 4096;

inline uint32_t vlan_flow(uint32_t outer, uint32_t inner, uint32_t inner_vlans) {
  return outer * inner_vlans + inner;
}

struct FlowNumbers {
  uint32_t max_flows = 0;    // all numbers are below this
  uint32_t inner_vlans = 0;  // 0: no pairs

  // Parses "12", or "100/7" where flows are pairs. Throws ConfigError.
  [[nodiscard]] uint32_t parse_text(std::string_view text, const std::string& where) const {
    uint64_t outer = 0;
    uint64_t inner = 0;
    const char* const end = text.data() + text.size();
    std::from_chars_result read = std::from_chars(text.data(), end, outer);
    const bool is_pair =
        inner_vlans != 0 && read.ec == std::errc() && read.ptr != end && *read.ptr == '/';
    if (is_pair) read = std::from_chars(read.ptr + 1, end, inner);
    const bool is_whole = read.ec == std::errc() && read.ptr == end;
    const bool is_vlan = !is_pair || (outer < kVlans && inner < inner_vlans);
    const uint64_t flow = is_pair ? outer * inner_vlans + inner : outer;
    if (is_whole && is_vlan && flow < max_flows) return static_cast<uint32_t>(flow);
    throw ConfigError("'" + std::string(text) + "' is no such flow", where, expected());
  }
  [[nodiscard]] uint32_t parse(const Value& flow, const std::string& where) const {
    if (flow.is_string()) return parse_text(flow.as_string(), where);
    if (flow.is_int()) return parse_text(std::to_string(flow.as_int()), where);
    throw ConfigError("expected a flow", where, expected());
  }

 private:
  [[nodiscard]] std::string expected() const {
    const std::string number = "an integer from 0 to " + std::to_string(max_flows - 1);
    if (inner_vlans == 0) return number;
    return "OUTER/INNER with the inner VLAN below " + std::to_string(inner_vlans) +
           " and outer * " + std::to_string(inner_vlans) + " + inner below max_flows, or " + number;
  }
};

}  // namespace batchplane
