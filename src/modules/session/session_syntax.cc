// SPDX-License-Identifier: BSD-3-Clause
// session_syntax.cc - parses sessions from files, parameters and live commands.
#include <algorithm>

#include "egress/tree/tree_params.h"
#include "modules/common/item_syntax.h"
#include "modules/session/session.h"
#include "modules/session/session_five_qi.h"

namespace batchplane::session {
namespace {

constexpr int64_t kMax32 = 0xffffffff;
constexpr int64_t kMaxBps = 1'000'000'000'000;
constexpr uint64_t kUsualBurstNs = 20'000'000;
constexpr size_t kMaxRules = 255;  // of each kind, per session
constexpr int64_t kMaxThreshold = 1'000'000'000'000'000'000;
constexpr int64_t kMinTimeNs = 1'000'000;
constexpr int64_t kMaxHoldPkts = 65535;

const List& list_under(const Value& value, const char* key, const std::string& where) {
  static const List kEmpty;
  if (!value.has(key)) return kEmpty;
  if (!value[key].is_list()) throw ConfigError("expected a list", where + "." + key);
  if (value[key].as_list().size() > kMaxRules) {
    throw ConfigError("more than " + std::to_string(kMaxRules) + " entries", where + "." + key);
  }
  return value[key].as_list();
}

uint32_t id_under(const Value& value, const char* key, const std::string& where) {
  return static_cast<uint32_t>(int_value(value[key], 0, kMax32, where + "." + key));
}

std::vector<uint32_t> ids_under(const Value& value, const char* key, size_t most,
                                const std::string& where) {
  std::vector<uint32_t> ids;
  for (const Value& id : list_under(value, key, where)) {
    ids.push_back(static_cast<uint32_t>(int_value(id, 0, kMax32, where + "." + key)));
  }
  if (ids.size() > most) {
    throw ConfigError("at most " + std::to_string(most) + " of them can be given",
                      where + "." + key, "one of the bearer and one of the session, say");
  }
  return ids;
}

bool word_under(const Value& value, const char* key, const char* yes, const char* no, bool missing,
                const std::string& where) {
  if (!value.has(key)) return missing;
  const std::string text = value[key].is_string() ? value[key].as_string() : "";
  if (text == yes || text == no) return text == yes;
  throw ConfigError("expected " + std::string(yes) + " or " + no, where + "." + key);
}

uint8_t qfi_under(const Value& value, const std::string& where) {
  return static_cast<uint8_t>(int_under(value, "qfi", 0, 63, kAnyQfi, where));
}

Pdr parse_pdr(const Value& value, const std::string& where) {
  check_keys(
      value,
      {"id", "source", "precedence", "teid", "qfi", "filters", "far", "qers", "urrs", "bearer"},
      where);
  if (!value.has("source")) {
    throw ConfigError("source is missing", where, "access (uplink) or core (downlink)");
  }
  Pdr pdr{
      .id = static_cast<uint16_t>(int_value(value["id"], 0, 0xffff, where + ".id")),
      .is_uplink = word_under(value, "source", "access", "core", false, where),
      .match_qfi = qfi_under(value, where),
      .bearer = static_cast<uint16_t>(int_under(value, "bearer", 0, 4095, 0, where)),
      .precedence = static_cast<uint32_t>(int_under(value, "precedence", 0, kMax32, 255, where)),
      .far = id_under(value, "far", where),
      .qers = ids_under(value, "qers", 2, where),
      .urrs = ids_under(value, "urrs", 8, where)};
  if (pdr.is_uplink) {
    pdr.teid = static_cast<uint32_t>(int_value(value["teid"], 1, kMax32, where + ".teid"));
  } else if (value.has("teid") || value.has("qfi")) {
    throw ConfigError("a downlink rule has no tunnel endpoint and no QFI", where,
                      "the far's teid is that of the way to the user, the qer's qfi its mark");
  }
  size_t i = 0;
  for (const Value& filter : list_under(value, "filters", where)) {
    const std::string at = where + ".filters[" + std::to_string(i++) + "]";
    if (!filter.is_string()) throw ConfigError("expected a flow description", at);
    pdr.filters.push_back(parse_flow_description(filter.as_string(), at));
  }
  return pdr;
}

FarAction action_under(const Value& value, const std::string& where) {
  if (!value.has("action")) return FarAction::kForward;
  const std::string text = value["action"].is_string() ? value["action"].as_string() : "";
  for (const FarAction action : {FarAction::kForward, FarAction::kDrop, FarAction::kBuffer}) {
    if (text == kActionNames[static_cast<size_t>(action)]) return action;
  }
  throw ConfigError("expected forward, drop or buffer", where + ".action");
}

bool flag_under(const Value& value, const char* key, bool missing, const std::string& where) {
  if (!value.has(key)) return missing;
  if (!value[key].is_bool()) throw ConfigError("expected true or false", where + "." + key);
  return value[key].as_bool();
}

Far parse_far(const Value& value, const std::string& where) {
  check_keys(value, {"id", "action", "notify", "teid", "peer"}, where);
  Far far{.id = id_under(value, "id", where),
          .action = action_under(value, where),
          .is_notifying = flag_under(value, "notify", true, where),
          .has_tunnel = value.has("teid") || value.has("peer")};
  if (!far.has_tunnel) return far;
  far.teid = static_cast<uint32_t>(int_value(value["teid"], 1, kMax32, where + ".teid"));
  const std::string text = value["peer"].is_string() ? value["peer"].as_string() : "";
  const auto peer = net::parse_ipv4(text);
  const auto peer6 = net::parse_ipv6(text);
  far.has_peer6 = peer6 && *peer6 != net::Address6{};
  if (!far.has_peer6 && (!peer || *peer == 0)) {
    throw ConfigError("expected an IPv4 or IPv6 address", where + ".peer",
                      "such as 192.0.2.2 or 2001:db8::2");
  }
  if (far.has_peer6) {
    far.peer6 = *peer6;
  } else {
    far.peer = *peer;
  }
  return far;
}

// Needs the guaranteed rates.
void parse_priority(const Value& value, Qer& qer, const std::string& where) {
  qer.has_priority = value.has("priority");
  qer.priority =
      static_cast<uint8_t>(int_under(value, "priority", 0, egress::kPriorities - 1, 0, where));
  const bool is_shaped = qer.is_shaped[0] || qer.is_shaped[1];
  const auto refuse_policed = [&](const char* key) {
    throw ConfigError("what is policed has no priority", where + "." + key,
                      "set shape: down, up or both");
  };
  if (qer.priority != 0 && !is_shaped) refuse_policed("priority");
  if (!value.has("5qi")) return;
  const auto number = int_value(value["5qi"], 1, 255, where + ".5qi");
  const std::optional<FiveQi> found = standard_five_qi(number);
  if (!found) {
    throw ConfigError("5QI " + std::to_string(number) + " is not standardised", where + ".5qi",
                      "one of " + standard_five_qis() + ", or priority (0 to 7) instead");
  }
  if (!is_shaped) refuse_policed("5qi");
  if (found->is_gbr && qer.gbr_up_bps == 0 && qer.gbr_down_bps == 0) {
    throw ConfigError(
        "5QI " + std::to_string(number) + " is for a guaranteed rate, and none is given",
        where + ".5qi", "set gbr_down_bps, gbr_up_bps or both");
  }
  qer.five_qi = found->value;
  if (!qer.has_priority) qer.priority = priority_of_level(found->level);
}

void parse_shape(const Value& value, Qer& qer, const std::string& where) {
  const std::string text = !value.has("shape")          ? "none"
                           : value["shape"].is_string() ? value["shape"].as_string()
                                                        : "";
  const auto* const found = std::ranges::find(kShapedNames, text);
  if (found == kShapedNames.end()) {
    throw ConfigError("expected none, down, up or both", where + ".shape");
  }
  const auto ways = found - kShapedNames.begin();
  qer.is_shaped = {(ways & 1) != 0, (ways & 2) != 0};
  const auto guaranteed = [&](const char* key, bool is_uplink, uint64_t mbr_bps) {
    const auto bps = static_cast<uint64_t>(int_under(value, key, 0, kMaxBps, 0, where));
    if (bps != 0 && !qer.is_shaped[is_uplink ? 1 : 0]) {
      throw ConfigError("a policer guarantees nothing", where + "." + key,
                        is_uplink ? "set shape: up or both" : "set shape: down or both");
    }
    if (mbr_bps != 0 && bps > mbr_bps) {
      throw ConfigError("more than the maximum rate cannot be guaranteed", where + "." + key,
                        "at most " + std::to_string(mbr_bps));
    }
    return bps;
  };
  qer.gbr_up_bps = guaranteed("gbr_up_bps", true, qer.mbr_up_bps);
  qer.gbr_down_bps = guaranteed("gbr_down_bps", false, qer.mbr_down_bps);
  parse_priority(value, qer, where);
}

Urr parse_urr(const Value& value, const std::string& where) {
  check_keys(value,
             {"id", "volume_bytes", "up_bytes", "down_bytes", "time_ns", kQuotaKeys[0],
              kQuotaKeys[1], kQuotaKeys[2], kQuotaKeys[3]},
             where);
  const auto threshold = [&](const char* key, int64_t least) {
    const auto given = int_under(value, key, 0, kMaxThreshold, 0, where);
    if (given != 0 && given < least) {
      throw ConfigError("expected at least " + std::to_string(least), where + "." + key,
                        "0 sets no threshold");
    }
    return static_cast<uint64_t>(given);
  };
  Urr urr{.id = id_under(value, "id", where),
          .volume_bytes = threshold("volume_bytes", 1),
          .up_bytes = threshold("up_bytes", 1),
          .down_bytes = threshold("down_bytes", 1),
          .time_ns = threshold("time_ns", kMinTimeNs)};
  for (size_t i = 0; i < kQuotaKinds; ++i) {
    if (!value.has(kQuotaKeys[i])) continue;
    urr.quotas[i].given =
        static_cast<uint64_t>(int_under(value, kQuotaKeys[i], 0, kMaxQuota, 0, where));
  }
  return urr;
}

template <class Rule>
std::vector<Rule> parse_all(const Value& value, const char* key,
                            Rule (*parse)(const Value&, const std::string&),
                            const std::string& where) {
  std::vector<Rule> all;
  for (const Value& item : list_under(value, key, where)) {
    const std::string at = where + "." + key + "[" + std::to_string(all.size()) + "]";
    Rule rule = parse(item, at);
    if (std::ranges::find(all, rule.id, &Rule::id) != all.end()) {
      throw ConfigError("another one of the session has the id " + std::to_string(rule.id), at,
                        "keep one of them");
    }
    all.push_back(std::move(rule));
  }
  return all;
}

void parse_addresses(const Value& value, Session& session, const std::string& where) {
  if (value.has("ue")) {
    const auto ue =
        value["ue"].is_string() ? net::parse_ipv4(value["ue"].as_string()) : std::nullopt;
    if (!ue || *ue == 0) {
      throw ConfigError("expected the user's IPv4 address", where + ".ue", "such as 10.45.0.2");
    }
    session.ue = *ue;
  }
  if (!value.has("ue6")) return;
  const auto ue6 =
      value["ue6"].is_string() ? net::parse_prefix6(value["ue6"].as_string()) : std::nullopt;
  if (!ue6 || ue6->length != 64) {
    throw ConfigError("expected the user's IPv6 prefix", where + ".ue6",
                      "such as 2001:db8:45:1::/64");
  }
  session.has_ue6 = true;
  session.ue6 = *ue6;
}

void check_references(const Session& session, const std::string& where) {
  for (size_t i = 0; i < session.pdrs.size(); ++i) {
    const Pdr& pdr = session.pdrs[i];
    const std::string at = where + ".pdrs[" + std::to_string(i) + "]";
    const auto missing = [&](const char* kind, uint32_t id) {
      throw ConfigError("the session has no " + std::string(kind) + " " + std::to_string(id), at,
                        "the session's list of them has to say what it is");
    };
    if (session.far_of(pdr) == nullptr) missing("far", pdr.far);
    if (pdr.is_uplink && session.far_of(pdr)->action == FarAction::kBuffer) {
      throw ConfigError("an uplink rule's far cannot buffer", at,
                        "only what waits for the user to be reached is buffered");
    }
    for (const uint32_t id : pdr.qers) {
      if (session.qer(id) == nullptr) missing("qer", id);
    }
    for (const uint32_t id : pdr.urrs) {
      if (session.urr(id) == nullptr) missing("urr", id);
    }
    if (!pdr.is_uplink && session.ue == 0 && !session.has_ue6) {
      throw ConfigError("a downlink rule needs the user's address", at, "give the session ue");
    }
  }
}

}  // namespace

const Far* Session::far_of(const Pdr& pdr) const {
  const auto it = std::ranges::find(fars, pdr.far, &Far::id);
  return it == fars.end() ? nullptr : &*it;
}
const Qer* Session::qer(uint32_t id) const {
  const auto it = std::ranges::find(qers, id, &Qer::id);
  return it == qers.end() ? nullptr : &*it;
}

const Urr* Session::urr(uint32_t id) const {
  const auto it = std::ranges::find(urrs, id, &Urr::id);
  return it == urrs.end() ? nullptr : &*it;
}

Qer parse_qer(const Value& value, const std::string& where) {
  check_keys(value,
             {"id", "qfi", "gate_up", "gate_down", "mbr_up_bps", "mbr_down_bps", "burst_ns",
              "shape", "gbr_up_bps", "gbr_down_bps", "priority", "5qi"},
             where);
  Qer qer{
      .id = id_under(value, "id", where),
      .qfi = qfi_under(value, where),
      .is_open_up = word_under(value, "gate_up", "open", "closed", true, where),
      .is_open_down = word_under(value, "gate_down", "open", "closed", true, where),
      .mbr_up_bps = static_cast<uint64_t>(int_under(value, "mbr_up_bps", 1000, kMaxBps, 0, where)),
      .mbr_down_bps =
          static_cast<uint64_t>(int_under(value, "mbr_down_bps", 1000, kMaxBps, 0, where)),
      .burst_ns = static_cast<uint64_t>(
          int_under(value, "burst_ns", 1000, 10'000'000'000, kUsualBurstNs, where))};
  qer.has_burst = value.has("burst_ns");
  parse_shape(value, qer, where);
  return qer;
}

Session parse_session(const Value& value, const std::string& where) {
  check_keys(value, {"seid", "ue", "ue6", "group", "pdrs", "fars", "qers", "urrs", "bar"}, where);
  Session session;
  session.seid = static_cast<uint64_t>(int_value(value["seid"], 1, INT64_MAX, where + ".seid"));
  session.group = static_cast<uint16_t>(int_under(value, "group", 0, 4095, 0, where));
  parse_addresses(value, session, where);
  session.pdrs = parse_all<Pdr>(value, "pdrs", parse_pdr, where);
  session.fars = parse_all<Far>(value, "fars", parse_far, where);
  session.qers = parse_all<Qer>(value, "qers", parse_qer, where);
  session.urrs = parse_all<Urr>(value, "urrs", parse_urr, where);
  if (value.has("bar")) {
    check_keys(value["bar"], {"hold_pkts"}, where + ".bar");
    session.hold_pkts = static_cast<uint16_t>(
        int_under(value["bar"], "hold_pkts", 1, kMaxHoldPkts, 0, where + ".bar"));
  }
  if (session.pdrs.empty()) {
    throw ConfigError("a session without rules", where + ".pdrs",
                      "give at least one packet detection rule");
  }
  check_references(session, where);
  return session;
}

}  // namespace batchplane::session
