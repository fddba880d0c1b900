// SPDX-License-Identifier: BSD-3-Clause
// acl_source.cc - access lists read from a filter file or generated for benchmarks.
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/net.h"
#include "base/rng.h"
#include "base/text_file.h"
#include "modules/acl/acl_rule.h"
#include "modules/acl/acl_syntax.h"

namespace batchplane {
namespace {

constexpr const char* kLineForm =
    "write @SRC DST LO : HI LO : HI PROTO/MASK [FLAGS/MASK], numbers of flags as 0x0000";

struct MaskedNumber {
  uint32_t value = 0;
  uint32_t mask = 0;
};

MaskedNumber masked_in(std::istringstream& in, const std::string& what, const std::string& where) {
  std::string word;
  in >> word;
  const size_t slash = word.find('/');
  const auto value = parse_acl_number(word.substr(0, slash));
  const auto mask =
      slash == std::string::npos ? std::nullopt : parse_acl_number(word.substr(slash + 1));
  if (!value || !mask) throw ConfigError("'" + word + "' is no " + what, where, kLineForm);
  return {*value & *mask, *mask};
}

AclPorts ports_in(std::istringstream& in, const std::string& where) {
  std::string first;
  std::string colon;
  std::string last;
  in >> first >> colon >> last;
  const auto low = parse_acl_number(first);
  const auto high = parse_acl_number(last);
  if (!low || !high || colon != ":") {
    throw ConfigError("'" + first + " " + colon + " " + last + "' is no port range", where,
                      kLineForm);
  }
  return make_acl_ports(*low, *high, where);
}

// ClassBench writes TCP flags as a 16-bit word; its generator uses the upper byte, hand-written
// files the lower one. Either is accepted, but not both in one mask.
void set_flags(AclMatch& match, MaskedNumber flags, const std::string& where) {
  if (flags.mask > 0xff && (flags.mask & 0xff) == 0) {
    flags = {flags.value >> 8, flags.mask >> 8};
  }
  if (flags.mask > 0xff) {
    throw ConfigError("the flags' mask spans two bytes", where, "a mask has one byte of flags");
  }
  match.tcp_flags = static_cast<uint8_t>(flags.value);
  match.tcp_flags_mask = static_cast<uint8_t>(flags.mask);
}

AclMatch match_of_line(const std::string& line, const std::string& where) {
  std::istringstream in(line);
  std::string src;
  std::string dst;
  in >> src >> dst;
  if (!src.starts_with('@')) throw ConfigError("a filter starts with '@'", where, kLineForm);
  const AclAddress from = parse_acl_address(src.substr(1), where);
  const AclAddress to = parse_acl_address(dst, where);
  AclMatch match;
  match.src_ports = ports_in(in, where);
  match.dst_ports = ports_in(in, where);
  const MaskedNumber proto = masked_in(in, "protocol", where);
  if (proto.mask != 0 && proto.mask != 0xff) {
    throw ConfigError("a protocol's mask is 0x00 or 0xFF", where, kLineForm);
  }
  match.proto = static_cast<uint8_t>(proto.value);
  match.proto_mask = static_cast<uint8_t>(proto.mask);
  if (!(in >> std::ws).eof()) set_flags(match, masked_in(in, "TCP flags", where), where);
  if (std::string rest; in >> rest) {
    throw ConfigError("'" + rest + "' stands behind the filter", where, kLineForm);
  }
  settle_acl_match(match, from, to, where);
  return match;
}

AclPrefix prefix4(uint32_t address, uint32_t length) {
  AclPrefix prefix;
  net::store32(prefix.bytes.data(), address & net::mask4(length));
  prefix.length = static_cast<uint8_t>(length);
  return prefix;
}

AclRule rule4(AclAction::Kind kind, uint8_t proto = 0) {
  AclRule rule;
  rule.match.family = AclFamily::kIpv4;
  rule.action.kind = kind;
  rule.match.proto = proto;
  rule.match.proto_mask = proto == 0 ? 0 : 0xff;
  return rule;
}

// The i-th /24 from 2.0.1.0 on, as both source and destination.
AclRule denied_pair(uint32_t i) {
  constexpr uint32_t kPerOctet = 254;
  AclRule rule = rule4(AclAction::Kind::kDeny);
  const uint32_t octets[] = {2 + i / (kPerOctet * kPerOctet), i / kPerOctet % kPerOctet,
                             i % kPerOctet + 1};
  rule.match.src = rule.match.dst = prefix4(octets[0] << 24 | octets[1] << 16 | octets[2] << 8, 24);
  return rule;
}

// All denied pairs before the permit rules: the worst case for a linear search, as described in the
// papers.
std::vector<AclRule> make_paper(uint32_t count) {
  std::vector<AclRule> rules;
  for (uint32_t i = 0; i + 2 < count; ++i) rules.push_back(denied_pair(i));
  rules.push_back(rule4(AclAction::Kind::kPermit, net::kProtoUdp));
  if (count > 1) rules.push_back(rule4(AclAction::Kind::kPermit, net::kProtoTcp));
  return rules;
}

// As in the papers' script: UDP first, so that later rules do not affect UDP.
std::vector<AclRule> make_script(uint32_t count) {
  std::vector<AclRule> rules{rule4(AclAction::Kind::kPermit, net::kProtoUdp)};
  for (uint32_t i = 0; i + 1 < count; ++i) rules.push_back(denied_pair(i));
  return rules;
}

// Resembles real access lists: prefixes nested below a few hundred networks, destination ports
// well-known or ranges, most source ports unrestricted.
AclRule random_rule(Rng& rng) {
  static constexpr uint8_t kLengths[] = {16, 20, 24, 24, 27, 28, 30, 32, 32, 32};
  static constexpr uint16_t kPorts[] = {22,  25,   53,   80,   110,  123,
                                        443, 1433, 1521, 3389, 5060, 8080};
  const auto network = [&] {
    const uint32_t site = rng.below(256);
    return (11U + site % 180) << 24 | (site * 37 % 251) << 16 | rng.below(64) << 8 | rng.below(256);
  };
  AclRule rule = rule4(rng.below(4) == 0 ? AclAction::Kind::kDeny : AclAction::Kind::kPermit);
  rule.match.dst = prefix4(network(), kLengths[rng.below(std::size(kLengths))]);
  if (rng.below(100) < 70) {
    rule.match.src = prefix4(network(), kLengths[rng.below(std::size(kLengths))]);
  }
  const uint32_t proto = rng.below(100);
  if (proto >= 90) return rule;
  rule.match.proto = proto < 65 ? net::kProtoTcp : net::kProtoUdp;
  rule.match.proto_mask = 0xff;
  const uint32_t kind = rng.below(100);
  if (kind < 60) {
    const uint16_t port = kPorts[rng.below(std::size(kPorts))];
    rule.match.dst_ports = {port, port};
  } else if (kind < 75) {
    const auto first = static_cast<uint16_t>(1024 + rng.below(100) * 50);
    rule.match.dst_ports = {first, static_cast<uint16_t>(first + 49)};
  } else if (kind < 85) {
    rule.match.dst_ports = {1024, 0xffff};
  }
  if (rng.below(100) < 5) rule.match.src_ports = {1024, 0xffff};
  return rule;
}

std::vector<AclRule> make_random(uint32_t count, uint64_t seed) {
  Rng rng(seed);
  std::set<AclMatch> taken;
  std::vector<AclRule> rules;
  while (rules.size() < count) {
    AclRule rule = random_rule(rng);
    if (taken.insert(rule.match).second) rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace

std::vector<AclRule> read_acl_file(const std::string& path, const AclAction& action) {
  std::ifstream in = open_text_file(path, "rules_file");
  std::vector<AclRule> rules;
  std::map<AclMatch, uint32_t> line_of;
  uint32_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    line.resize(std::min(line.size(), line.find('#')));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    AclRule rule;
    rule.action = action;
    const std::string where = path + ":" + std::to_string(number);
    rule.match = match_of_line(line, where);
    const auto [first, is_new] = line_of.emplace(rule.match, number);
    if (!is_new) {
      throw ConfigError("line " + std::to_string(first->second) + " has the same filter", where,
                        "keep one of them");
    }
    if (rules.size() == kMaxAclRules) {
      throw ConfigError("more than " + std::to_string(kMaxAclRules) + " filters", where);
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::vector<AclRule> make_synthetic_acl(const Dict& params, const std::string& where) {
  if (params.empty()) return {};
  std::string style = "paper";
  int64_t numbers[] = {100, 1};
  for (const auto& [key, value] : params) {
    if (key == "style" && value.is_string()) {
      style = value.as_string();
    } else if ((key == "count" || key == "seed") && value.is_int() && value.as_int() >= 0) {
      numbers[key == "seed" ? 1 : 0] = value.as_int();
    } else {
      throw ConfigError("'" + key + "' is unknown or no number", where,
                        "synthetic takes style, count and seed");
    }
  }
  if (numbers[0] < 1 || numbers[0] > kMaxAclRules) {
    throw ConfigError("count is out of range", where, "1 to " + std::to_string(kMaxAclRules));
  }
  const auto count = static_cast<uint32_t>(numbers[0]);
  if (style == "paper") return make_paper(count);
  if (style == "script") return make_script(count);
  if (style == "random") return make_random(count, static_cast<uint64_t>(numbers[1]));
  throw ConfigError("there is no style '" + style + "'", where, "paper, script or random");
}

}  // namespace batchplane
