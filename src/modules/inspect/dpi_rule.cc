// SPDX-License-Identifier: BSD-3-Clause
// dpi_rule.cc - reads rules written as mappings in a pipeline or a live command.
#include "modules/inspect/dpi_rule.h"

#include "base/net.h"
#include "base/net6.h"

namespace batchplane::dpi {
namespace {

struct ProtoName {
  const char* name;
  uint8_t proto;
};
constexpr ProtoName kProtoNames[] = {
    {"ip", 0}, {"tcp", net::kProtoTcp}, {"udp", net::kProtoUdp}, {"icmp", net::kProtoIcmp}};

std::string string_in(const Value& item, const char* key, const std::string& where) {
  if (!item.has(key)) return "";
  if (!item[key].is_string()) throw ConfigError("expected a text", where + "." + key, "");
  return item[key].as_string();
}

std::vector<std::string> strings_in(const Value& item, const char* key, const std::string& where) {
  if (!item.has(key)) return {};
  if (item[key].is_string()) return {item[key].as_string()};
  std::vector<std::string> texts;
  if (item[key].is_list()) {
    for (const Value& one : item[key].as_list()) {
      if (one.is_string()) texts.push_back(one.as_string());
    }
    if (texts.size() == item[key].as_list().size()) return texts;
  }
  throw ConfigError("expected a text, or a list of them", where + "." + key, "");
}

uint8_t proto_in(const Value& item, const std::string& where) {
  const std::string name = item.has("proto") ? string_in(item, "proto", where) : "ip";
  for (const ProtoName& one : kProtoNames) {
    if (name == one.name) return one.proto;
  }
  throw ConfigError("expected a protocol", where + ".proto", "one of ip, tcp, udp, icmp");
}

DpiRule parse(const Value& item, const std::string& where, uint32_t /*n_gates*/) {
  check_keys(item, {"id", "content", "nocase", "pcre", "proto", "action", "mark", "message"},
             where);
  DpiRule rule;
  bool is_nocase = false;
  if (item.has("nocase")) {
    if (!item["nocase"].is_bool())
      throw ConfigError("expected true or false", where + ".nocase", "");
    is_nocase = item["nocase"].as_bool();
  }
  for (const std::string& text : strings_in(item, "content", where)) {
    rule.patterns.push_back({parse_content(text, where + ".content"), is_nocase});
  }
  for (const std::string& text : strings_in(item, "pcre", where)) {
    rule.patterns.push_back(parse_pcre(text, where + ".pcre"));
  }
  if (rule.patterns.empty()) {
    throw ConfigError("the rule looks for nothing", where, "give content or pcre");
  }
  rule.proto = proto_in(item, where);
  const std::string action = item.has("action") ? string_in(item, "action", where) : "alert";
  if (action != "alert" && action != "mark" && action != "drop") {
    throw ConfigError("expected an action", where + ".action", "one of alert, mark, drop");
  }
  rule.action = action_of(action);
  rule.mark = static_cast<uint32_t>(int_under(item, "mark", 0, 0xffffffff, 0, where));
  rule.message = string_in(item, "message", where);
  return rule;
}

Dict format(const DpiRule& rule) {
  List contents;
  List expressions;
  Dict item{{"action", name_of(rule.action)}};
  for (const Pattern& pattern : rule.patterns) {
    if (pattern.is_regex) {
      expressions.emplace_back("/" + pattern.bytes + "/" + pattern.regex_flags);
    } else {
      contents.emplace_back(format_content(pattern.bytes));
      if (pattern.is_nocase) item["nocase"] = true;
    }
  }
  if (!contents.empty()) item["content"] = contents;
  if (!expressions.empty()) item["pcre"] = expressions;
  for (const ProtoName& one : kProtoNames) {
    if (rule.proto != 0 && rule.proto == one.proto) item["proto"] = one.name;
  }
  if (rule.mark != 0) item["mark"] = rule.mark;
  if (!rule.message.empty()) item["message"] = rule.message;
  return item;
}

}  // namespace

Action action_of(const std::string& name) {
  if (name == "drop") return Action::kDrop;
  return name == "mark" ? Action::kMark : Action::kAlert;
}

const char* name_of(Action action) {
  if (action == Action::kDrop) return "drop";
  return action == Action::kMark ? "mark" : "alert";
}

DpiBook make_dpi_book() {
  return DpiBook({.list_name = "rules",
                  .id_name = "id",
                  .max_id = kFirstWordId - 1,
                  .max_items = kMaxDpiRules,
                  .parse = parse,
                  .format = format});
}

}  // namespace batchplane::dpi
