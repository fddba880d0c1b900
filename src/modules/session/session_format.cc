// SPDX-License-Identifier: BSD-3-Clause
// session_format.cc - formats sessions as values that parse_session accepts; makes synthetic
// sessions; reads session files.
#include "base/error.h"
#include "base/json_line.h"
#include "base/text_file.h"
#include "modules/common/item_syntax.h"
#include "modules/session/session.h"

namespace batchplane::session {
namespace {

constexpr int64_t kMaxTeid = 0xffffffff;
constexpr int64_t kMaxSynthetic = 4'000'000;

List ids(const std::vector<uint32_t>& given) { return {given.begin(), given.end()}; }

Dict format_pdr(const Pdr& pdr) {
  Dict out{{"id", uint32_t{pdr.id}},
           {"source", pdr.is_uplink ? "access" : "core"},
           {"precedence", pdr.precedence},
           {"far", pdr.far}};
  if (pdr.is_uplink) out["teid"] = pdr.teid;
  if (pdr.match_qfi != kAnyQfi) out["qfi"] = uint32_t{pdr.match_qfi};
  if (pdr.bearer != 0) out["bearer"] = uint32_t{pdr.bearer};
  if (!pdr.qers.empty()) out["qers"] = ids(pdr.qers);
  if (!pdr.urrs.empty()) out["urrs"] = ids(pdr.urrs);
  List filters;
  for (const Filter& filter : pdr.filters) filters.emplace_back(format_flow_description(filter));
  if (!filters.empty()) out["filters"] = std::move(filters);
  return out;
}

Dict format_far(const Far& far) {
  Dict out{{"id", far.id}, {"action", kActionNames[static_cast<size_t>(far.action)]}};
  if (!far.is_notifying) out["notify"] = false;
  if (far.has_tunnel) {
    out["teid"] = far.teid;
    out["peer"] = far.has_peer6 ? net::format_ipv6(far.peer6) : net::format_ipv4(far.peer);
  }
  return out;
}

Dict format_qer(const Qer& qer) {
  Dict out{{"id", qer.id}};
  if (qer.has_burst) out["burst_ns"] = qer.burst_ns;
  if (qer.qfi != kAnyQfi) out["qfi"] = uint32_t{qer.qfi};
  if (!qer.is_open_up) out["gate_up"] = "closed";
  if (!qer.is_open_down) out["gate_down"] = "closed";
  if (qer.mbr_up_bps != 0) out["mbr_up_bps"] = qer.mbr_up_bps;
  if (qer.mbr_down_bps != 0) out["mbr_down_bps"] = qer.mbr_down_bps;
  const int ways = (qer.is_shaped[0] ? 1 : 0) + (qer.is_shaped[1] ? 2 : 0);
  if (ways != 0) out["shape"] = kShapedNames[static_cast<size_t>(ways)];
  if (qer.gbr_up_bps != 0) out["gbr_up_bps"] = qer.gbr_up_bps;
  if (qer.gbr_down_bps != 0) out["gbr_down_bps"] = qer.gbr_down_bps;
  if (qer.five_qi != 0) out["5qi"] = uint32_t{qer.five_qi};
  const bool is_usual = qer.priority == 0 && qer.five_qi == 0;
  if (qer.has_priority && !is_usual) out["priority"] = uint32_t{qer.priority};
  return out;
}

Dict format_urr(const Urr& urr) {
  Dict out{{"id", urr.id}};
  if (urr.volume_bytes != 0) out["volume_bytes"] = urr.volume_bytes;
  if (urr.up_bytes != 0) out["up_bytes"] = urr.up_bytes;
  if (urr.down_bytes != 0) out["down_bytes"] = urr.down_bytes;
  if (urr.time_ns != 0) out["time_ns"] = urr.time_ns;
  for (size_t i = 0; i < kQuotaKinds; ++i) {
    if (urr.quotas[i].given) out[kQuotaKeys[i]] = *urr.quotas[i].given;
  }
  return out;
}

template <class Rule>
List format_all(const std::vector<Rule>& rules, Dict (*format)(const Rule&)) {
  List list;
  for (const Rule& rule : rules) list.emplace_back(format(rule));
  return list;
}

uint32_t address_under(const Dict& params, const char* key, const char* missing,
                       const std::string& where) {
  const auto it = params.find(key);
  const std::string text = it == params.end()       ? missing
                           : it->second.is_string() ? it->second.as_string()
                                                    : "";
  const auto address = net::parse_ipv4(text);
  if (!address) throw ConfigError("expected an IPv4 address", where + "." + key);
  return *address;
}

// The QER of one bearer, or with ID 0 that of a session's bearers together.
Qer synthetic_qer(const Value& params, const char* rate, const std::string& where) {
  const int64_t bps =
      params.has(rate) ? int_value(params[rate], 1000, 1'000'000'000'000, where + "." + rate) : 0;
  Dict said{{"id", 0}};
  if (bps != 0) said["mbr_up_bps"] = said["mbr_down_bps"] = bps;
  if (params.has("shape")) said["shape"] = params["shape"];
  return parse_qer(said, where);
}

Urr synthetic_urr(const Value& params, const std::string& where) {
  Urr urr{.id = 1};
  if (params.has("quota_bytes")) {
    urr.quotas[0].given =
        static_cast<uint64_t>(int_under(params, "quota_bytes", 0, kMaxQuota, 0, where));
  }
  return urr;
}

}  // namespace

Dict format_session(const Session& session) {
  Dict out{{"seid", session.seid},
           {"pdrs", format_all(session.pdrs, format_pdr)},
           {"fars", format_all(session.fars, format_far)}};
  if (session.group != 0) out["group"] = uint32_t{session.group};
  if (session.ue != 0) out["ue"] = net::format_ipv4(session.ue);
  if (session.has_ue6) out["ue6"] = net::format_prefix6(session.ue6);
  if (!session.qers.empty()) out["qers"] = format_all(session.qers, format_qer);
  if (!session.urrs.empty()) out["urrs"] = format_all(session.urrs, format_urr);
  if (session.hold_pkts != 0) out["bar"] = Dict{{"hold_pkts", uint32_t{session.hold_pkts}}};
  return out;
}

// Bearer b of a user takes packets from port 10 + b; the last bearer takes the rest. Session s has
// SEID s + 1 and group s modulo groups; tunnel endpoints are consecutive, bearer by bearer.
std::vector<Session> make_synthetic_sessions(const Dict& params, const std::string& where) {
  const Value given(params);
  check_keys(given,
             {"count", "bearers", "groups", "ue", "teid", "peer_teid", "peer", "peers", "mbr_bps",
              "qfi", "quota_bytes", "shape", "ambr_bps"},
             where);
  const int64_t n = int_under(given, "count", 0, kMaxSynthetic, 0, where);
  const int64_t bearers = int_under(given, "bearers", 1, 64, 1, where);
  const int64_t groups = int_under(given, "groups", 1, 4096, 4096, where);
  const int64_t peers = int_under(given, "peers", 1, 65536, 1, where);
  const int64_t teid = int_under(given, "teid", 1, kMaxTeid - kMaxSynthetic * 64, 1, where);
  const int64_t peer_teid =
      int_under(given, "peer_teid", 1, kMaxTeid - kMaxSynthetic * 64, teid, where);
  const Urr urr = synthetic_urr(given, where);
  const Qer qer = synthetic_qer(given, "mbr_bps", where);
  const Qer of_session = synthetic_qer(given, "ambr_bps", where);
  const bool has_ambr = given.has("ambr_bps");
  const bool has_qfi = int_under(given, "qfi", 0, 1, 0, where) != 0;
  const uint32_t ue = address_under(params, "ue", "10.45.0.1", where);
  const uint32_t peer = address_under(params, "peer", "192.0.2.1", where);
  std::vector<Session> sessions(static_cast<size_t>(n));
  for (int64_t s = 0; s < n; ++s) {
    Session& one = sessions[static_cast<size_t>(s)];
    one.seid = static_cast<uint64_t>(s) + 1;
    one.origin = Origin::kBulk;
    one.ue = ue + static_cast<uint32_t>(s);
    one.group = static_cast<uint16_t>(s % groups);
    one.fars.push_back({.id = 0});
    one.urrs.push_back(urr);
    std::vector<uint32_t> qers = {0};
    if (has_ambr) {
      one.qers.push_back(of_session);
      qers.push_back(of_session.id);
    }
    for (int64_t b = 0; b < bearers; ++b) {
      const auto number = static_cast<uint32_t>(s * bearers + b);
      const auto id = static_cast<uint32_t>(b + 1);
      const auto bearer = static_cast<uint16_t>(b);
      one.fars.push_back({.id = id,
                          .has_tunnel = true,
                          .teid = static_cast<uint32_t>(peer_teid) + number,
                          .peer = peer + static_cast<uint32_t>(s % peers)});
      Qer of_bearer = qer;
      of_bearer.id = id;
      if (has_qfi) of_bearer.qfi = static_cast<uint8_t>(b % 63 + 1);
      one.qers.push_back(of_bearer);
      qers[0] = id;
      one.pdrs.push_back({.id = static_cast<uint16_t>(2 * b + 1),
                          .is_uplink = true,
                          .bearer = bearer,
                          .teid = static_cast<uint32_t>(teid) + number,
                          .far = 0,
                          .qers = qers,
                          .urrs = {1}});
      Pdr down{.id = static_cast<uint16_t>(2 * b + 2),
               .bearer = bearer,
               .precedence = id,
               .far = id,
               .qers = qers,
               .urrs = {1}};
      if (b + 1 < bearers) {
        const auto port = static_cast<uint16_t>(10 + b);
        down.filters.push_back(
            {.remote_low = port, .remote_high = port, .proto = 17, .is_any_proto = false});
      }
      one.pdrs.push_back(std::move(down));
    }
  }
  return sessions;
}

std::vector<Session> read_session_file(const std::string& path) {
  std::ifstream in = open_text_file(path, "file");
  std::vector<Session> sessions;
  const auto file = std::make_shared<const std::string>(path);
  uint32_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    const std::string where = path + ":" + std::to_string(number);
    Value value;
    try {
      value = parse_json_line(line);
    } catch (const ConfigError& error) {
      throw ConfigError(error.what(), where, error.fix());
    }
    sessions.push_back(parse_session(value, where));
    sessions.back().origin = Origin::kBulk;
    sessions.back().line = number;
    sessions.back().file = file;
  }
  return sessions;
}

}  // namespace batchplane::session
