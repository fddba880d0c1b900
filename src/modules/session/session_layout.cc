// SPDX-License-Identifier: BSD-3-Clause
// session_layout.cc - orders rules by precedence, resolves their references, and gives shared QERs
// a meter.
#include "modules/session/session_layout.h"

#include <algorithm>
#include <map>

#include "base/net.h"

namespace batchplane::session {
namespace {

// If only one rule of a direction refers to a QER, its meter is in that rule's own state, where it
// costs no further cache line.
class Meters {
 public:
  Meters(const Session& session, const LayoutSink& sink) : session_(session), sink_(sink) {
    for (const Pdr& pdr : session.pdrs) {
      for (const uint32_t id : pdr.qers) ++n_users_[{id, pdr.is_uplink}];
    }
  }

  void give(const Pdr& pdr, Rule& rule) {
    size_t n_shared = 0;
    bool is_own_taken = false;
    for (const uint32_t id : pdr.qers) {
      const Qer& qer = *session_.qer(id);
      const bool is_open = pdr.is_uplink ? qer.is_open_up : qer.is_open_down;
      if (!is_open) rule.flags &= static_cast<uint8_t>(~Rule::kGateOpen);
      if (qer.qfi != kAnyQfi) rule.qfi = qer.qfi;
      const uint64_t bps = pdr.is_uplink ? qer.mbr_up_bps : qer.mbr_down_bps;
      if (bps == 0 || qer.is_shaped[pdr.is_uplink ? 1 : 0]) continue;
      const MeterRate rate = meter_rate(bps, qer.burst_ns);
      if (n_users_[{id, pdr.is_uplink}] == 1 && !is_own_taken) {
        rule.own = PackedRate::of(rate);
        is_own_taken = true;
        continue;
      }
      const auto [at, is_new] = places_.emplace(std::pair(id, pdr.is_uplink), kNone);
      if (is_new) at->second = sink_.add_meter(rate);
      rule.shared[n_shared++] = at->second;
      rule.flags |= Rule::kShares;
    }
  }

 private:
  const Session& session_;
  const LayoutSink& sink_;
  std::map<std::pair<uint32_t, bool>, uint32_t> n_users_;
  std::map<std::pair<uint32_t, bool>, uint32_t> places_;
};

uint32_t add_filters(const std::vector<Filter>& filters, const LayoutSink& sink) {
  uint32_t next = kNone;
  for (size_t i = filters.size(); i > 0; --i) {
    Filter filter = filters[i - 1];
    filter.next = next;
    next = sink.add_filter(filter);
  }
  return next;
}

// A quota for one direction applies to packets of that direction only.
uint32_t quotas_of(const Session& session, const Pdr& pdr, const LayoutSink& sink) {
  bool (*const up)(QuotaKind) = [](QuotaKind kind) { return kind != QuotaKind::kDown; };
  bool (*const down)(QuotaKind) = [](QuotaKind kind) { return kind != QuotaKind::kUp; };
  uint32_t next = kNone;
  for (const Urr& urr : session.urrs) {
    if (std::ranges::find(pdr.urrs, urr.id) == pdr.urrs.end()) continue;
    next = add_quotas(urr, pdr.is_uplink ? up : down, next, sink.add_quota);
  }
  return next;
}

Rule rule_of(const Session& session, const Pdr& pdr, const LayoutSink& sink, Meters& meters) {
  Rule rule;
  rule.flags = Rule::kGateOpen | (pdr.is_uplink ? Rule::kUplink : 0);
  rule.ue_raw = net::be32(session.ue);
  if (session.has_ue6) rule.ue6_raw = __builtin_bswap64(session.ue6.address.high);
  rule.bearer = pdr.bearer;
  rule.group = session.group;
  rule.match_qfi = pdr.match_qfi;
  rule.filter = add_filters(pdr.filters, sink);
  rule.session = session.number;
  const Far& far = *session.far_of(pdr);
  if (far.action == FarAction::kForward) rule.flags |= Rule::kForwards;
  if (far.action == FarAction::kBuffer) {
    rule.flags |= Rule::kBuffers | (far.is_notifying ? Rule::kNotifies : 0);
  }
  if (far.has_tunnel) {
    rule.flags |= Rule::kHasTunnel;
    rule.peer_raw = net::be32(far.peer);
    if (far.has_peer6) {
      Peer6 peer;
      net::store_address6(peer.data(), far.peer6);
      rule.flags |= Rule::kPeer6;
      rule.peer_raw = sink.add_peer6(peer);
    }
    rule.peer_teid_raw = net::be32(far.teid);
  }
  meters.give(pdr, rule);
  rule.quotas = quotas_of(session, pdr, sink);
  if (rule.quotas != kNone) rule.flags |= Rule::kShares;
  return rule;
}

// Installs the rules of one list, linked in order; returns the first one's slot.
uint32_t set_list(const Session& session, std::vector<const Pdr*> list, const LayoutSink& sink,
                  Meters& meters) {
  std::ranges::stable_sort(list, {}, &Pdr::precedence);
  uint32_t next = kNone;
  for (size_t i = list.size(); i > 0; --i) {
    Rule rule = rule_of(session, *list[i - 1], sink, meters);
    rule.next = next;
    next = list[i - 1]->slot;
    sink.set_rule(next, rule);
  }
  return next;
}

}  // namespace

MeterRate meter_rate(uint64_t bps, uint64_t burst_ns) {
  if (bps == 0) return {};
  constexpr uint64_t kPerKbyte = 1'000'000'000ULL * 8 * 256 * 1024;
  return {.cost = std::max<uint64_t>((kPerKbyte + bps / 2) / bps, 1), .burst = burst_ns * 256};
}

uint32_t add_quotas(const Urr& urr, bool (*wants)(QuotaKind), uint32_t next,
                    const std::function<uint32_t(const Quota&)>& add) {
  for (size_t i = 0; i < kQuotaKinds; ++i) {
    const Grant& grant = urr.quotas[i];
    const auto kind = static_cast<QuotaKind>(i);
    if (!grant.given || !wants(kind)) continue;
    next = add({.limit = grant.limit,
                .place = grant.place,
                .grant = grant.number,
                .next = next,
                .kind = kind});
  }
  return next;
}

void lay_out(const Session& session, const LayoutSink& sink) {
  Meters meters(session, sink);
  std::vector<const Pdr*> down;
  std::map<uint32_t, std::vector<const Pdr*>> up;
  for (const Pdr& pdr : session.pdrs) {
    if (pdr.is_uplink) {
      up[pdr.teid].push_back(&pdr);
    } else {
      down.push_back(&pdr);
    }
  }
  for (auto& [teid, list] : up) sink.set_teid(teid, set_list(session, list, sink, meters));
  if (!down.empty()) sink.set_users(set_list(session, down, sink, meters));
}

}  // namespace batchplane::session
