// SPDX-License-Identifier: BSD-3-Clause
// session_rows.cc - formats sessions, reports and removed rules for the answers of commands.
#include "modules/session/session_rows.h"

#include <algorithm>

#include "modules/session/session_shape.h"
#include "modules/session/session_watch.h"

namespace batchplane::session {
namespace {

constexpr std::array<const char*, kQuotaKinds> kLeftKeys = {
    "quota_left_bytes", "up_quota_left_bytes", "down_quota_left_bytes", "quota_left_ns"};
constexpr const char* kTriggerNames[] = {"volume", "time", "quota", "termination"};

void put_usage(Dict& row, const std::string& prefix, const Usage& usage) {
  row[prefix + "_pkts"] = usage.pkts;
  row[prefix + "_bytes"] = usage.bytes;
  row[prefix + "_dropped_pkts"] = usage.dropped_pkts;
}

// The session's flows in the schedulers that shape it.
List leaves_of(const Session& session) {
  List leaves;
  for (const Pdr& pdr : session.pdrs) {
    const bool is_shaped = std::ranges::any_of(
        pdr.qers, [&](uint32_t id) { return session.qer(id)->is_shaped[pdr.is_uplink ? 1 : 0]; });
    if (!is_shaped) continue;
    leaves.emplace_back(Dict{{"pdr", uint32_t{pdr.id}}, {"flow", flow_of_slot(pdr.slot)}});
  }
  return leaves;
}

void put_used(Dict& row, const Used& used) {
  row["up_bytes"] = used.up_bytes;
  row["down_bytes"] = used.down_bytes;
  row["up_pkts"] = used.up_pkts;
  row["down_pkts"] = used.down_pkts;
}

// What is left of each quota, and whether it is used up, that is, had too little left for a packet.
void put_quotas(Dict& row, const SessionTable& table, const Urr& urr) {
  bool has_any = false;
  bool is_one_used_up = false;
  for (uint32_t at = table.current_rules().watches[urr.place].quotas; at != kNone;
       at = table.current_rules().quotas[at].next) {
    const Quota& quota = table.current_rules().quotas[at];
    const QuotaState& state = table.quota_states()[quota.place];
    row[kLeftKeys[static_cast<size_t>(quota.kind)]] = left_of(quota, state, table.looked_ns());
    is_one_used_up = is_one_used_up || is_used_up(quota, state, table.looked_ns());
    has_any = true;
  }
  if (has_any) row["is_used_up"] = is_one_used_up;
}

}  // namespace

Dict row_of(const SessionTable& table, const Session& session) {
  Dict row{{"seid", session.seid},
           {"group", uint32_t{session.group}},
           {"rules", static_cast<uint64_t>(session.pdrs.size())}};
  if (session.ue != 0) row["ue"] = net::format_ipv4(session.ue);
  if (session.has_ue6) row["ue6"] = net::format_prefix6(session.ue6);
  if (List leaves = leaves_of(session); !leaves.empty()) row["leaves"] = std::move(leaves);
  put_usage(row, "up", table.usage(session, true));
  put_usage(row, "down", table.usage(session, false));
  List urrs;
  for (const Urr& urr : session.urrs) {
    Dict of_urr{{"id", urr.id}};
    put_usage(of_urr, "up", table.usage(session, true, urr.id));
    put_usage(of_urr, "down", table.usage(session, false, urr.id));
    if (urr.place != kNone) {
      const Used used = used_since_report(table, table.current_rules(), urr.place);
      of_urr["reports"] = table.usage_state(urr.place).reports.value();
      of_urr["up_bytes_since_report"] = used.up_bytes;
      of_urr["down_bytes_since_report"] = used.down_bytes;
      put_quotas(of_urr, table, urr);
    }
    urrs.emplace_back(std::move(of_urr));
  }
  row["urrs"] = std::move(urrs);
  return row;
}

Dict report_row(const ReportBook::Entry& entry) {
  const Report& report = entry.report;
  Dict row{{"number", entry.number}, {"seid", entry.seid}};
  if (report.kind == Report::Kind::kDownlinkData) {
    row["kind"] = "downlink_data";
    row["pdr"] = entry.pdr;
    row["at_ns"] = report.end_ns;
    return row;
  }
  row["kind"] = "usage";
  row["urr"] = report.urr;
  row["trigger"] = kTriggerNames[static_cast<size_t>(report.trigger)];
  if (report.used_up != 0) {
    List keys;
    for (size_t i = 0; i < kQuotaKinds; ++i) {
      if ((report.used_up >> i & 1) != 0) keys.emplace_back(kQuotaKeys[i]);
    }
    row["used_up"] = std::move(keys);
  }
  row["sequence"] = report.sequence;
  row["begin_ns"] = report.begin_ns;
  row["end_ns"] = report.end_ns;
  put_used(row, report.used);
  return row;
}

List ended_rows(const std::vector<Ended>& all) {
  List rows;
  for (const Ended& ended : all) {
    List urrs;
    for (const EndedUrr& urr : ended.urrs) {
      Dict row{{"id", urr.id}, {"report", urr.number}};
      put_used(row, urr.used);
      urrs.emplace_back(std::move(row));
    }
    List pdrs;
    for (const EndedPdr& pdr : ended.pdrs) {
      pdrs.emplace_back(Dict{{"id", uint32_t{pdr.id}},
                             {"source", pdr.is_uplink ? "access" : "core"},
                             {"pkts", pdr.usage.pkts},
                             {"bytes", pdr.usage.bytes},
                             {"dropped_pkts", pdr.usage.dropped_pkts}});
    }
    rows.emplace_back(Dict{{"seid", ended.seid},
                           {"is_deleted", ended.is_whole},
                           {"urrs", std::move(urrs)},
                           {"pdrs", std::move(pdrs)}});
  }
  return rows;
}

}  // namespace batchplane::session
