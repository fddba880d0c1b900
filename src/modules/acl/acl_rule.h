// SPDX-License-Identifier: BSD-3-Clause
// acl_rule.h - match and action of an access rule, and its notation.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/value.h"

namespace batchplane {

// An address prefix of either family; host bits are zero.
struct AclPrefix {
  std::array<uint8_t, 16> bytes{};  // network order; IPv4 in the first four
  uint8_t length = 0;
  auto operator<=>(const AclPrefix&) const = default;
};

struct AclPorts {
  uint16_t first = 0;
  uint16_t last = 0xffff;
  [[nodiscard]] bool is_any() const { return first == 0 && last == 0xffff; }
  auto operator<=>(const AclPorts&) const = default;
};

// kAny: a rule without addresses, which applies to both families.
enum class AclFamily : uint8_t { kAny, kIpv4, kIpv6 };

struct AclMatch {
  AclFamily family = AclFamily::kAny;
  AclPrefix src;
  AclPrefix dst;
  AclPorts src_ports;
  AclPorts dst_ports;
  uint8_t proto = 0;
  uint8_t proto_mask = 0;  // 0 = any protocol
  uint8_t tcp_flags = 0;   // bits of byte 13 of the TCP header
  uint8_t tcp_flags_mask = 0;

  // True if only packets with a transport header can match, so no later fragments.
  [[nodiscard]] bool needs_ports() const {
    return !src_ports.is_any() || !dst_ports.is_any() || tcp_flags_mask != 0;
  }
  [[nodiscard]] bool is_for(AclFamily packets) const {
    return family == AclFamily::kAny || family == packets;
  }
  // True if this matches every packet that `other` matches.
  [[nodiscard]] bool covers(const AclMatch& other) const;
  auto operator<=>(const AclMatch&) const = default;
};

struct AclAction {
  enum class Kind : uint8_t { kPermit, kDeny, kGate, kMark };
  Kind kind = Kind::kPermit;
  uint32_t number = 0;  // of the gate, or the mark
  auto operator<=>(const AclAction&) const = default;
};

struct AclRule {
  AclMatch match;
  AclAction action;
  int32_t priority = 0;  // higher is looked at first; equal ones in list order
  std::string name;
  bool operator==(const AclRule&) const = default;
};

inline constexpr uint32_t kMaxAclRules = 10'000;
inline constexpr int32_t kMaxAclPriority = 1'000'000;

// All parse functions throw ConfigError with a place below `where`.
AclAction parse_acl_action(const Value& value, const std::string& where);
// Parses the match fields; ignores other entries of `dict`.
AclMatch parse_acl_match(const Dict& dict, const std::string& where);
AclRule parse_acl_rule(const Value& value, const std::string& where);
std::vector<AclRule> parse_acl_rules(const List& list, const std::string& where);

std::string format_acl_action(const AclAction& action);
// The inverse of parse_acl_rule.
Dict format_acl_rule(const AclRule& rule);

// Reads ClassBench filters, one per line: `@SRC DST LO : HI LO : HI PROTO/MASK [FLAGS/MASK]`. Skips
// empty lines and comments from '#' on. Errors name the line.
std::vector<AclRule> read_acl_file(const std::string& path, const AclAction& action);

// Generated for benchmarks: {style: paper | script | random, count, seed}.
std::vector<AclRule> make_synthetic_acl(const Dict& params, const std::string& where);

}  // namespace batchplane
