// SPDX-License-Identifier: BSD-3-Clause
#include "egress/bound/bound.h"

#include <algorithm>
#include <cmath>

#include "egress/discipline/qfq_plus.h"

namespace batchplane::egress {
namespace {

constexpr double kBitsOfByte = 8;
constexpr double kNsOfSecond = 1e9;

uint32_t level_of(const FlowParams& flow) { return std::min(flow.weight, 64U); }

// The terms of a flow's bound; times in bytes of the link.
struct Terms {
  double share = 0;  // of the link
  double others_bytes = 0;
};

// DRR serves a flow until its credit is used up, in turn with all others. In k turns the flow sends
// at least k quanta less its remaining credit, and the others at most k quanta plus their remaining
// credit.
Terms of_drr(const FlowParams& flow, const Crowd& crowd) {
  const double unit = crowd.lmax_bytes;
  const double own = unit * flow.weight;
  const double all = unit * static_cast<double>(crowd.weight_sum);
  const double left = static_cast<double>(crowd.lmax_sum_bytes) - flow.lmax_bytes;
  return {own / all, (1 + flow.lmax_bytes / own) * (all - own) + left};
}

// The worst-case fair index of QFQ over the flow's share: 3 sigma / phi + 2 Lmax, as long as nobody
// sends more at once.
double qfq_bytes(const FlowParams& flow, const Crowd& crowd, uint64_t most_at_once_bytes) {
  const double lmax_bytes = std::max(flow.lmax_bytes, kMinLmaxBytes);
  const double sigma = std::exp2(std::ceil(std::log2(lmax_bytes / flow.weight)));
  return 3 * sigma * static_cast<double>(crowd.weight_sum) +
         2.0 * static_cast<double>(most_at_once_bytes);
}

// Below the highest level no share is guaranteed; at the highest level flows take turns packet by
// packet.
Terms of_prio(const FlowParams& flow, const Crowd& crowd) {
  if (level_of(flow) < crowd.top_level) return {};
  const auto sum = static_cast<double>(crowd.top_lmax_sum_bytes);
  return {flow.lmax_bytes / sum, sum - flow.lmax_bytes + crowd.lmax_bytes};
}

Terms terms_of(const std::string& discipline, const FlowParams& flow, const Crowd& crowd) {
  const double phi = flow.weight / static_cast<double>(crowd.weight_sum);
  if (discipline == "drr") return of_drr(flow, crowd);
  // As a guaranteed-rate server WF2Q+ is late by the packet in service. Virtual time advances when
  // a packet is taken out, so a packet that arrives during service counts from the end of that
  // service.
  if (discipline == "wf2q_plus") return {phi, 2.0 * crowd.lmax_bytes};
  if (discipline == "qfq") return {phi, qfq_bytes(flow, crowd, crowd.lmax_bytes)};
  if (discipline == "qfq_plus") {
    return {phi, qfq_bytes(flow, crowd, crowd.most_at_once_bytes) + flow.lmax_bytes / phi};
  }
  if (discipline == "prio") return of_prio(flow, crowd);
  return {};
}

}  // namespace

double wire_stretch(const Framing& framing, uint32_t lmax_bytes) {
  double most = 1;
  for (uint32_t bytes = kShortestPktBytes; bytes <= std::max(lmax_bytes, kMinLmaxBytes); ++bytes) {
    most = std::max(most, static_cast<double>(framing.wire_bytes(bytes)) / bytes);
  }
  return most;
}

void Crowd::add(const FlowParams& flow) {
  weight_sum += flow.weight;
  lmax_sum_bytes += flow.lmax_bytes;
  lmax_bytes = std::max(lmax_bytes, flow.lmax_bytes);
  limit_pkts += flow.limit_pkts;
  const uint32_t like = ++flows_of_kind[{flow.weight, flow.lmax_bytes}];
  const uint64_t at_once_bytes =
      uint64_t{flow.lmax_bytes} * std::min(like, QfqPlus::kMaxFlowsOfAggregate);
  most_at_once_bytes = std::max(most_at_once_bytes, at_once_bytes);
  if (level_of(flow) > top_level) {
    top_level = level_of(flow);
    top_lmax_sum_bytes = 0;
  }
  if (level_of(flow) == top_level) top_lmax_sum_bytes += flow.lmax_bytes;
}

Bound bound_of(const std::string& discipline, const FlowParams& flow, const Crowd& crowd,
               const Server& server) {
  if (server.rate_bps == 0) return {.why_not = NoBound::kNoRate};
  const double byte_ns = kBitsOfByte * kNsOfSecond / static_cast<double>(server.rate_bps) *
                         wire_stretch(server.framing, crowd.lmax_bytes);
  // The arbiter sees the packet in the next round but one, and releases it in the first round after
  // the link is free.
  Bound bound{.arbiter_ns = 2 * server.round_ns + server.read_interval_ns};
  if (discipline == "fifo") {
    bound.others_ns = static_cast<double>(crowd.limit_pkts) * crowd.lmax_bytes * byte_ns;
    return bound;
  }
  const Terms terms = terms_of(discipline, flow, crowd);
  if (terms.share <= 0) return {.why_not = NoBound::kNoShare};
  bound.share_bps = terms.share * kBitsOfByte * kNsOfSecond / byte_ns;
  bound.own_ns = flow.lmax_bytes * byte_ns / terms.share;
  bound.others_ns = terms.others_bytes * byte_ns;
  return bound;
}

namespace {

bool is_met(const Bound& bound, const Need& need) {
  return bound.has_one() && bound.share_bps >= need.sends_bps &&
         bound.total_ns() <= need.allowed_ns;
}

// The least weight, from its present one on, that meets the flow's need; 0: none.
uint32_t least_weight(const std::string& discipline, const FlowParams& flow, const Crowd& others,
                      const Need& need, const Server& server) {
  const auto meets = [&](uint32_t weight) {
    FlowParams tried = flow;
    tried.weight = weight;
    Crowd crowd = others;
    crowd.add(tried);
    return is_met(bound_of(discipline, tried, crowd, server), need);
  };
  uint32_t high = flow.weight;
  while (!meets(high)) {
    if (high >= kMaxWeight) return 0;
    high = std::min(kMaxWeight, 2 * high);
  }
  uint32_t low = std::max(flow.weight, high / 2);
  // Some bounds have steps at powers of two: within one such interval, a need that is met stays
  // met.
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (meets(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

}  // namespace

std::vector<uint32_t> least_weights(const std::string& discipline, std::vector<FlowParams> flows,
                                    const std::vector<Need>& needs, const Server& server) {
  for (const Need& need : needs) flows[need.flow].weight = 1;
  // A larger weight for one flow is a smaller share for the others: raises weights from 1 until all
  // needs are met.
  for (bool any = true; any;) {
    any = false;
    for (const Need& need : needs) {
      Crowd others;
      for (uint32_t f = 0; f < flows.size(); ++f) {
        if (f != need.flow) others.add(flows[f]);
      }
      const uint32_t weight = least_weight(discipline, flows[need.flow], others, need, server);
      if (weight == 0) return {};
      any |= weight != flows[need.flow].weight;
      flows[need.flow].weight = weight;
    }
  }
  std::vector<uint32_t> weights;
  for (const FlowParams& flow : flows) weights.push_back(flow.weight);
  return weights;
}

}  // namespace batchplane::egress
