// SPDX-License-Identifier: BSD-3-Clause
// acl_rule.cc - converts access rules from and to plain values.
#include "modules/acl/acl_rule.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/nearest_word.h"
#include "base/net.h"
#include "core/module/args.h"
#include "modules/acl/acl_syntax.h"

namespace batchplane {
namespace {

constexpr std::pair<const char*, uint8_t> kProtocols[] = {
    {"icmp", 1}, {"tcp", 6},     {"udp", 17},  {"gre", 47},  {"esp", 50},
    {"ah", 51},  {"icmpv6", 58}, {"ospf", 89}, {"sctp", 132}};
constexpr const char* kFlagNames[] = {"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"};

const std::vector<std::string>& field_names() {
  static const std::vector<std::string> kNames = {
      "src", "dst", "src_ports", "dst_ports", "proto", "action", "priority", "name", "tcp_flags"};
  return kNames;
}

AclAddress address_in(const Dict& dict, const std::string& key, const std::string& where) {
  const auto it = dict.find(key);
  if (it == dict.end() || (it->second.is_string() && it->second.as_string() == "any")) return {};
  const std::string at = where + "." + key;
  if (!it->second.is_string()) {
    throw ConfigError("expected a prefix, found " + std::string(it->second.type_name()), at,
                      "such as 10.0.0.0/8, 2001:db8::/32 or any");
  }
  return parse_acl_address(it->second.as_string(), at);
}

AclPorts ports_in(const Dict& dict, const std::string& key, const std::string& where) {
  const auto it = dict.find(key);
  if (it == dict.end()) return {};
  const std::string at = where + "." + key;
  const auto number = [&](const std::string& text) {
    const auto found = parse_acl_number(text);
    if (!found) throw ConfigError("'" + text + "' is no port", at, "such as 80, 1024-65535 or any");
    return *found;
  };
  if (it->second.is_int()) {
    const int64_t port = it->second.as_int();
    if (port < 0 || port > 0xffff) {
      throw ConfigError("port " + std::to_string(port) + " is out of range", at, "0 to 65535");
    }
    return make_acl_ports(static_cast<uint32_t>(port), static_cast<uint32_t>(port), at);
  }
  if (!it->second.is_string()) throw ConfigError("expected ports", at, "such as 80 or 1024-65535");
  const std::string& text = it->second.as_string();
  if (text == "any") return {};
  const size_t dash = text.find_first_of("-:");
  const uint32_t first = number(text.substr(0, dash));
  return make_acl_ports(first, dash == std::string::npos ? first : number(text.substr(dash + 1)),
                        at);
}

void parse_proto(const Dict& dict, const std::string& where, AclMatch& match) {
  const auto it = dict.find("proto");
  if (it == dict.end() || (it->second.is_string() && it->second.as_string() == "any")) return;
  match.proto_mask = 0xff;
  if (it->second.is_string()) {
    for (const auto& [name, number] : kProtocols) {
      if (it->second.as_string() != name) continue;
      match.proto = number;
      return;
    }
  }
  const auto number = it->second.is_int() ? it->second.as_int() : int64_t{-1};
  if (number < 0 || number > 255) {
    throw ConfigError("expected a protocol", where + ".proto",
                      "0 to 255, any, or icmp, tcp, udp, gre, esp, ah, icmpv6, ospf, sctp");
  }
  match.proto = static_cast<uint8_t>(number);
}

void parse_flags(const Dict& dict, const std::string& where, AclMatch& match) {
  const auto it = dict.find("tcp_flags");
  if (it == dict.end()) return;
  const std::string at = where + ".tcp_flags";
  const char* const fix = "such as \"syn,!ack\" or \"0x02/0x12\" (value/mask)";
  if (!it->second.is_string()) throw ConfigError("expected TCP flags", at, fix);
  const std::string& text = it->second.as_string();
  if (const size_t slash = text.find('/'); slash != std::string::npos) {
    const auto value = parse_acl_number(text.substr(0, slash));
    const auto mask = parse_acl_number(text.substr(slash + 1));
    if (!value || !mask || *mask > 0xff || (*value & ~*mask) != 0) {
      throw ConfigError("'" + text + "' is no value/mask of eight flags", at, fix);
    }
    match.tcp_flags = static_cast<uint8_t>(*value);
    match.tcp_flags_mask = static_cast<uint8_t>(*mask);
    return;
  }
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const bool is_clear = word.starts_with('!');
    const auto* const name = std::ranges::find(kFlagNames, word.substr(is_clear ? 1 : 0));
    if (name == std::end(kFlagNames)) throw ConfigError("'" + word + "' is no TCP flag", at, fix);
    const auto bit = static_cast<uint8_t>(1U << (name - kFlagNames));
    if ((match.tcp_flags_mask & bit) != 0) {
      throw ConfigError("'" + text + "' names a flag twice", at, fix);
    }
    match.tcp_flags_mask |= bit;
    if (!is_clear) match.tcp_flags |= bit;
  }
}

std::string format_ports(const AclPorts& ports) {
  return ports.first == ports.last ? std::to_string(ports.first)
                                   : std::to_string(ports.first) + "-" + std::to_string(ports.last);
}

std::string hex_of(uint32_t number) {
  std::ostringstream out;
  out << "0x" << std::hex << number;
  return out.str();
}

}  // namespace

AclAction parse_acl_action(const Value& value, const std::string& where) {
  const char* const fix = "permit, deny, \"gate 3\" or \"mark 7\"";
  if (!value.is_string()) throw ConfigError("expected an action", where, fix);
  std::istringstream in(value.as_string());
  std::string verb;
  std::string number_text;
  std::string rest;
  in >> verb >> number_text >> rest;
  const bool is_alone = number_text.empty();
  if (verb == "permit" && is_alone) return {AclAction::Kind::kPermit, 0};
  if (verb == "deny" && is_alone) return {AclAction::Kind::kDeny, 0};
  const auto number = parse_acl_number(number_text);
  if ((verb == "gate" || verb == "mark") && number && rest.empty()) {
    return {verb == "gate" ? AclAction::Kind::kGate : AclAction::Kind::kMark, *number};
  }
  throw ConfigError("'" + value.as_string() + "' is no action", where, fix);
}

AclMatch parse_acl_match(const Dict& dict, const std::string& where) {
  AclMatch match;
  match.src_ports = ports_in(dict, "src_ports", where);
  match.dst_ports = ports_in(dict, "dst_ports", where);
  parse_proto(dict, where, match);
  parse_flags(dict, where, match);
  settle_acl_match(match, address_in(dict, "src", where), address_in(dict, "dst", where), where);
  return match;
}

AclRule parse_acl_rule(const Value& value, const std::string& where) {
  if (!value.is_dict()) throw ConfigError("expected a rule", where, "a mapping with an action");
  const Dict& dict = value.as_dict();
  for (const auto& [key, field] : dict) {
    if (std::ranges::find(field_names(), key) != field_names().end()) continue;
    const std::string near = nearest_word(key, field_names());
    throw ConfigError("unknown field '" + key + "'", where,
                      near.empty() ? "a rule has src, dst, src_ports, dst_ports, proto, tcp_flags, "
                                     "action, priority and name"
                                   : "did you mean " + near + "?");
  }
  AclRule rule;
  rule.match = parse_acl_match(dict, where);
  rule.action = parse_acl_action(value["action"], where + ".action");
  if (const Value& name = value["name"]; !name.is_null()) {
    if (!name.is_string()) throw ConfigError("expected text", where + ".name");
    rule.name = name.as_string();
  }
  if (const Value& priority = value["priority"]; !priority.is_null()) {
    if (!priority.is_int() || std::abs(priority.as_int()) > kMaxAclPriority) {
      throw ConfigError("expected an integer", where + ".priority", "from -1000000 to 1000000");
    }
    rule.priority = static_cast<int32_t>(priority.as_int());
  }
  return rule;
}

std::vector<AclRule> parse_acl_rules(const List& list, const std::string& where) {
  std::vector<AclRule> rules;
  for (size_t i = 0; i < list.size(); ++i) {
    rules.push_back(parse_acl_rule(list[i], where + "[" + std::to_string(i) + "]"));
  }
  return rules;
}

std::string format_acl_action(const AclAction& action) {
  static constexpr const char* kNames[] = {"permit", "deny", "gate ", "mark "};
  const std::string name = kNames[static_cast<uint32_t>(action.kind)];
  return name.ends_with(' ') ? name + std::to_string(action.number) : name;
}

Dict format_acl_rule(const AclRule& rule) {
  const AclMatch& match = rule.match;
  Dict dict{{"action", format_acl_action(rule.action)}};
  // If both prefixes are empty, one is still written, since it shows the address family.
  if (match.src.length != 0 || (match.family != AclFamily::kAny && match.dst.length == 0)) {
    dict["src"] = format_acl_prefix(match.family, match.src);
  }
  if (match.dst.length != 0) dict["dst"] = format_acl_prefix(match.family, match.dst);
  if (!match.src_ports.is_any()) dict["src_ports"] = format_ports(match.src_ports);
  if (!match.dst_ports.is_any()) dict["dst_ports"] = format_ports(match.dst_ports);
  if (match.proto_mask != 0) {
    dict["proto"] = static_cast<int>(match.proto);
    for (const auto& [name, number] : kProtocols) {
      if (number == match.proto) dict["proto"] = name;
    }
  }
  if (match.tcp_flags_mask != 0) {
    dict["tcp_flags"] = hex_of(match.tcp_flags) + "/" + hex_of(match.tcp_flags_mask);
  }
  if (rule.priority != 0) dict["priority"] = static_cast<int64_t>(rule.priority);
  if (!rule.name.empty()) dict["name"] = rule.name;
  return dict;
}

}  // namespace batchplane
