// SPDX-License-Identifier: BSD-3-Clause
// bound_test.cc - the bound against the longest waits that adversarial clients can cause.
#include "egress/bound/bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "egress/arbiter/virtual_arbiter.h"

namespace batchplane::egress {
namespace bound_test {

constexpr uint64_t kRateBps = 1'000'000'000;
constexpr uint32_t kPktBytes = 1500;
constexpr uint64_t kPktNs = 12'000;  // on the link

FlowParams flow_of(uint32_t weight, uint32_t lmax_bytes = kPktBytes) {
  return {.weight = weight, .lmax_bytes = lmax_bytes, .limit_pkts = 4096};
}
Crowd crowd_of(const std::vector<FlowParams>& flows) {
  Crowd crowd;
  for (const FlowParams& flow : flows) crowd.add(flow);
  return crowd;
}

// Flow 0 sends batches as fast as its share allows, or slower; the other flows come and go,
// together, in bursts, with long and short packets.
std::vector<Arrival> adversary(const std::vector<FlowParams>& flows, uint32_t batch_pkts,
                               double part_of_share, double share_bps, Rng& rng) {
  const double batch_ns = batch_pkts * flows[0].lmax_bytes * 8e9 / (share_bps * part_of_share);
  const auto n_batches = static_cast<uint32_t>(300 / batch_pkts + 10);
  std::vector<Arrival> arrivals;
  for (uint32_t b = 0; b < n_batches; ++b) {
    const auto at_ns = static_cast<uint64_t>(batch_ns * b) + 1 + rng.below(100);
    for (uint32_t i = 0; i < batch_pkts; ++i) arrivals.push_back({at_ns, 0, flows[0].lmax_bytes});
  }
  const auto end_ns = static_cast<uint64_t>(batch_ns * n_batches);
  for (uint32_t f = 1; f < flows.size(); ++f) {
    uint64_t at_ns = rng.below(kPktNs);
    while (at_ns < end_ns) {
      const uint32_t burst = 1 + rng.below(f % 3 == 0 ? 40 : 3);
      for (uint32_t i = 0; i < burst; ++i) {
        const uint32_t len = rng.below(4) == 0 ? 64 : flows[f].lmax_bytes;
        arrivals.push_back({at_ns, f, len});
      }
      // Some flood, some wait until all others have had their turn.
      const uint64_t gap = f % 4 == 1 ? kPktNs * flows.size() * (1 + rng.below(3)) : kPktNs * burst;
      at_ns += 1 + rng.below(static_cast<uint32_t>(gap));
    }
  }
  std::ranges::stable_sort(arrivals, {}, &Arrival::at_ns);
  return arrivals;
}

// The longest time from the arrival of a batch's first packet, with batches filled at the flow's
// sending rate, until any of its packets is released, less the fill time; divided by the bound.
double part_of_bound(const std::string& discipline, const std::vector<FlowParams>& flows,
                     uint32_t batch_pkts, double part_of_share, uint64_t round_ns, Rng& rng) {
  const Server ideal{.rate_bps = kRateBps};
  const double share_bps = bound_of(discipline, flows[0], crowd_of(flows), ideal).share_bps;
  const std::vector<Arrival> arrivals = adversary(flows, batch_pkts, part_of_share, share_bps, rng);
  const VirtualSpec spec{.discipline = discipline,
                         .flows = flows,
                         .client_of_flow = std::vector<uint32_t>(flows.size(), 0),
                         .mailbox_pkts = 1U << 20,
                         .round_ns = round_ns,
                         .mailbox_ns = 0,
                         .take_pkt_ns = 0,
                         .release_pkt_ns = 0,
                         .take_pkts = 1U << 20,
                         .has_backpressure = false,
                         .rate_bps = kRateBps};
  const VirtualResult result = run_virtual(spec, arrivals);
  const auto longest_ns = static_cast<double>(*std::ranges::max_element(result.round_took_ns));
  const Server server{.rate_bps = kRateBps, .round_ns = longest_ns};
  const Bound bound = bound_of(discipline, flows[0], crowd_of(flows), server);
  const double gap_ns = flows[0].lmax_bytes * 8e9 / (share_bps * part_of_share);
  double worst_ns = 0;
  uint32_t at = 0;  // in its batch
  for (size_t i = 0; i < arrivals.size(); ++i) {
    if (arrivals[i].flow != 0) continue;
    EXPECT_EQ(result.fates[i], Fate::kSent);
    const auto waited_ns = static_cast<double>(result.release_ns[i] - arrivals[i].at_ns);
    const double filled_ns = gap_ns * (batch_pkts - 1 - at);
    worst_ns = std::max(worst_ns, filled_ns + waited_ns - gap_ns * (batch_pkts - 1));
    at = at + 1 == batch_pkts ? 0 : at + 1;
  }
  return worst_ns / bound.total_ns();
}

std::vector<std::vector<FlowParams>> crowds() {
  std::vector<std::vector<FlowParams>> all(5);
  all[0] = {flow_of(50)};
  for (int i = 0; i < 32; ++i) all[0].push_back(flow_of(1));
  all[1] = {flow_of(1)};
  for (int i = 0; i < 10; ++i) all[1].push_back(flow_of(5));
  all[2] = {flow_of(7, 300)};
  for (uint32_t i = 0; i < 20; ++i) all[2].push_back(flow_of(1 + i * 37 % 16));
  all[3] = {flow_of(3), flow_of(3)};
  // Eight equal flows send at once.
  all[4] = {flow_of(8, 200)};
  for (int i = 0; i < 24; ++i) all[4].push_back(flow_of(1));
  return all;
}

double worst_part(const std::string& discipline, uint32_t batch_pkts, uint64_t round_ns) {
  double worst = 0;
  uint64_t seed = 1;
  for (const std::vector<FlowParams>& flows : crowds()) {
    for (const double part_of_share : {0.5, 0.95, 1.0}) {
      Rng rng(seed++);
      worst = std::max(worst,
                       part_of_bound(discipline, flows, batch_pkts, part_of_share, round_ns, rng));
    }
  }
  return worst;
}

// Fill and egress delay are paid only once: the same bound for single packets and for batches of
// 32.
TEST(EgressBound, HoldsWhateverOthersSendAndHoweverLargeBatchesAre) {
  for (const char* discipline : {"drr", "wf2q_plus", "qfq", "qfq_plus"}) {
    for (const uint32_t batch_pkts : {1U, 8U, 32U}) {
      for (const uint64_t round_ns : {1UL, 9000UL}) {
        EXPECT_LE(worst_part(discipline, batch_pkts, round_ns), 1)
            << discipline << " " << batch_pkts << " " << round_ns;
      }
    }
  }
}

// No bound is so far off that it would be useless.
TEST(EgressBound, IsWithinAFewTimesTheWorst) {
  EXPECT_GT(worst_part("wf2q_plus", 1, 1), 0.5);
  EXPECT_GT(worst_part("drr", 1, 1), 0.3);
  EXPECT_GT(worst_part("qfq", 1, 1), 0.15);
  EXPECT_GT(worst_part("qfq_plus", 1, 1), 0.15);
}

// One discipline's bound is broken by another discipline.
TEST(EgressBound, OfWf2qIsBrokenByRoundRobin) {
  const std::vector<FlowParams> flows = crowds()[0];
  Rng rng(1);
  const Server server{.rate_bps = kRateBps};
  const double drr_ns = bound_of("drr", flows[0], crowd_of(flows), server).total_ns();
  const double wf2q_ns = bound_of("wf2q_plus", flows[0], crowd_of(flows), server).total_ns();
  EXPECT_GT(part_of_bound("drr", flows, 1, 0.5, 1, rng) * drr_ns, 5 * wf2q_ns);
}

TEST(EgressBound, TermsAreTold) {
  const std::vector<FlowParams> flows = {flow_of(3), flow_of(1)};
  const Server server{.rate_bps = kRateBps, .round_ns = 1000, .read_interval_ns = 500};
  const Bound bound = bound_of("wf2q_plus", flows[0], crowd_of(flows), server);
  EXPECT_DOUBLE_EQ(bound.share_bps, 0.75 * kRateBps);
  EXPECT_DOUBLE_EQ(bound.own_ns, kPktNs / 0.75);
  EXPECT_DOUBLE_EQ(bound.others_ns, 2 * kPktNs);
  EXPECT_DOUBLE_EQ(bound.arbiter_ns, 2500);
  EXPECT_DOUBLE_EQ(bound.total_ns(), 42'500);
}

TEST(EgressBound, CountsWhatGoesAroundAPacket) {
  const std::vector<FlowParams> flows = {flow_of(1), flow_of(1)};
  const Server server{.rate_bps = kRateBps, .framing = {.overhead_bytes = 24, .min_bytes = 84}};
  const Bound bound = bound_of("wf2q_plus", flows[0], crowd_of(flows), server);
  EXPECT_NEAR(bound.share_bps, kRateBps / 2.0 * 60 / 84, 1);
}

TEST(EgressBound, IsAbsentWithoutAGuarantee) {
  std::vector<FlowParams> flows = {flow_of(1), flow_of(2), flow_of(2, 500)};
  const Crowd crowd = crowd_of(flows);
  const Server server{.rate_bps = kRateBps};
  EXPECT_EQ(bound_of("qfq", flows[0], crowd, {}).why_not, NoBound::kNoRate);
  EXPECT_EQ(bound_of("prio", flows[0], crowd, server).why_not, NoBound::kNoShare);
  EXPECT_EQ(bound_of("calendar", flows[0], crowd, server).why_not, NoBound::kNoShare);
  const Bound first = bound_of("prio", flows[2], crowd, server);
  EXPECT_DOUBLE_EQ(first.share_bps, 0.25 * kRateBps);
  EXPECT_DOUBLE_EQ(first.others_ns, 2 * kPktNs);
  // FIFO: all packets that may wait in front.
  EXPECT_DOUBLE_EQ(bound_of("fifo", flows[0], crowd, server).total_ns(), 3.0 * 4096 * kPktNs);
}

TEST(LeastWeights, MeetAllNeedsAndNoLessWouldDo) {
  const Server server{.rate_bps = kRateBps, .round_ns = 1000};
  Rng rng(1);
  uint32_t n_possible = 0;
  for (uint32_t trial = 0; trial < 200; ++trial) {
    const char* const discipline = trial % 2 == 0 ? "wf2q_plus" : "qfq";
    std::vector<FlowParams> flows(6, flow_of(1));
    std::vector<Need> needs;
    for (uint32_t f = 0; f < 3; ++f) {
      flows[f].lmax_bytes = 200 + static_cast<uint32_t>(rng.below(1000));
      needs.push_back({.flow = f,
                       .sends_bps = 1e6 * static_cast<double>(1 + rng.below(400)),
                       .allowed_ns = 1e3 * static_cast<double>(30 + rng.below(400))});
    }
    const std::vector<uint32_t> weights = least_weights(discipline, flows, needs, server);
    if (weights.empty()) continue;
    ++n_possible;
    for (uint32_t f = 0; f < flows.size(); ++f) flows[f].weight = weights[f];
    for (const Need& need : needs) {
      const Bound bound = bound_of(discipline, flows[need.flow], crowd_of(flows), server);
      EXPECT_GE(bound.share_bps, need.sends_bps);
      EXPECT_LE(bound.total_ns(), need.allowed_ns);
      // One weight less for a flow breaks its need.
      std::vector<FlowParams> less = flows;
      if (--less[need.flow].weight == 0 || discipline == std::string("qfq")) continue;
      const Bound worse = bound_of(discipline, less[need.flow], crowd_of(less), server);
      EXPECT_TRUE(worse.share_bps < need.sends_bps || worse.total_ns() > need.allowed_ns);
    }
  }
  EXPECT_GT(n_possible, 50U);
  // More than the link carries.
  EXPECT_TRUE(least_weights("qfq", {flow_of(1), flow_of(1)},
                            {{.flow = 0, .sends_bps = 1.1 * kRateBps, .allowed_ns = 1e9}}, server)
                  .empty());
}

}  // namespace bound_test
}  // namespace batchplane::egress
