// SPDX-License-Identifier: BSD-3-Clause
// fairness_test.cc - each scheduler's guarantee, measured against the fluid ideal.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "egress/discipline/discipline_test_util.h"

namespace batchplane::egress {
namespace fairness_test {

constexpr double kPktBytes = 1500;

// A million packets; with BATCHPLANE_LONG=1 a hundred times as many.
uint64_t many(uint64_t n) { return std::getenv("BATCHPLANE_LONG") != nullptr ? 100 * n : n; }

template <class D>
double worst_pkts(uint32_t n_flows) {
  return worst_while_all_backlogged<D>(uneven(n_flows), many(300'000), n_flows) / kPktBytes;
}

TEST(Fairness, BacklogedFlowsAreNeverFarFromTheirShare) {
  for (const uint32_t n : {2U, 32U, 1000U}) {
    EXPECT_LE(worst_pkts<Wf2qPlus>(n), 2) << n;
    EXPECT_LE(worst_pkts<Qfq>(n), 4) << n;
    EXPECT_LE(worst_pkts<QfqPlus>(n), 5) << n;
  }
}

// A weakness of deficit round robin: its heaviest flow is served 64 packets in a row.
TEST(Fairness, RoundRobinIsOffByQuanta) { EXPECT_GT(worst_pkts<Drr>(32), 5); }

// Clients that come and go in bursts, some only while others are silent.
template <class D>
class ComingAndGoing {
 public:
  ComingAndGoing(const std::vector<TestFlow>& flows, uint64_t seed)
      : flows_(flows),
        discipline_(make_discipline<D>(flows, 64 * static_cast<uint32_t>(flows.size()))),
        meter_(flows),
        rng_(seed) {}

  void run(uint64_t n_pkts) {
    for (uint64_t k = 0; k < n_pkts; ++k) {
      arrive();
      Descriptor pkt;
      if (!discipline_.dequeue(pkt)) continue;
      meter_.departs(pkt.flow, pkt.len_bytes());
      // A flow returns as soon as its last packet has left, so it is idle for no time at all.
      if (pkt.flow % 5 == 1 && discipline_.backlog_pkts(pkt.flow) == 0) put(pkt.flow);
    }
  }
  [[nodiscard]] const ShareMeter& meter() const { return meter_; }

 private:
  void arrive() {
    const auto n = static_cast<uint32_t>(flows_.size());
    const uint32_t flow = rng_.below(4) == 0 ? 0 : rng_.below(n);
    const uint32_t burst = rng_.below(8) == 0 ? 1 + rng_.below(20) : rng_.below(2);
    const bool waits = flow % 7 == 2 && discipline_.backlog_pkts() > n;
    for (uint32_t k = 0; k < burst && !waits; ++k) put(flow);
  }
  void put(uint32_t flow) {
    const uint32_t len = rng_.below(2) == 0 ? flows_[flow].lmax_bytes : 64;
    const bool was_idle = discipline_.backlog_pkts(flow) == 0;
    const Enqueued put = discipline_.enqueue(Descriptor::of(1, len, flow, 0));
    if (is_in(put) && was_idle) meter_.backlog_begins(flow);
  }

  std::vector<TestFlow> flows_;
  D discipline_;
  ShareMeter meter_;
  Rng rng_;
};

// B-WFI of QFQ in bytes of the flow: 3 phi sigma + 2 phi L.
double qfq_wfi_bytes(const TestFlow& flow, double phi) {
  const double longest = flow.lmax_bytes / static_cast<double>(flow.weight);
  const double sigma = std::exp2(std::ceil(std::log2(longest)));
  return 3 * flow.weight * sigma + 2 * phi * kPktBytes;
}
double wf2q_wfi_bytes(const TestFlow& flow, double phi) {
  return flow.lmax_bytes + (kPktBytes - flow.lmax_bytes) * phi;
}

std::vector<std::vector<TestFlow>> flow_sets() {
  std::vector<TestFlow> mixed = uneven(64);
  for (size_t f = 0; f < mixed.size(); ++f) mixed[f].lmax_bytes = f % 3 == 0 ? 300 : 1500;
  return {heavy_and_light(50, 32), heavy_and_light(100, 100), uneven(64), mixed};
}

// The largest part of its bound that any flow used; `bound` gives bytes by flow and share.
template <class D, class Bound>
double worst_part(const Bound& bound) {
  double worst = 0;
  uint64_t seed = 1;
  for (const std::vector<TestFlow>& flows : flow_sets()) {
    ComingAndGoing<D> clients(flows, seed++);
    clients.run(many(200'000));
    for (uint32_t f = 0; f < flows.size(); ++f) {
      const double limit = bound(flows[f], clients.meter().share(f));
      worst = std::max(worst, clients.meter().wfi_bytes(f) / limit);
    }
  }
  return worst;
}

TEST(WorstCaseFairIndex, IsWithinTheBoundAtAFlowsOwnDepartures) {
  EXPECT_LE(worst_part<Wf2qPlus>(wf2q_wfi_bytes), 1);
  EXPECT_LE(worst_part<Qfq>(qfq_wfi_bytes), 1);
  const auto qfq_plus = [](const TestFlow& flow, double phi) {
    return qfq_wfi_bytes(flow, phi) + flow.lmax_bytes;
  };
  EXPECT_LE(worst_part<QfqPlus>(qfq_plus), 1);
}

TEST(WorstCaseFairIndex, OfRoundRobinIsAboveTheBoundOfQfq) {
  EXPECT_GT(worst_part<Drr>(qfq_wfi_bytes), 1);
}

// One flow is idle until virtual time has wrapped around: it must not wait for its old finish time.
template <class D>
uint32_t longest_wait_pkts_of_one_who_was_idle() {
  uint32_t longest = 0;
  for (uint32_t idle_pkts = 1000; idle_pkts < 60'000; idle_pkts += 501) {
    D discipline = make_discipline<D>({{.weight = 1}, {.weight = 1}}, 16);
    Descriptor pkt;
    const auto put = [&](uint32_t flow) { discipline.enqueue(Descriptor::of(1, 1500, flow, 0)); };
    put(1);
    discipline.dequeue(pkt);
    put(0);
    for (uint32_t k = 0; k < idle_pkts; ++k) {
      put(0);
      discipline.dequeue(pkt);
    }
    put(1);
    uint32_t waited = 0;
    for (; discipline.dequeue(pkt) && pkt.flow != 1; ++waited) put(0);
    longest = std::max(longest, waited);
  }
  return longest;
}

TEST(VirtualTime, NobodyWaitsForWhatWasBeforeItWrapped) {
  EXPECT_LE(longest_wait_pkts_of_one_who_was_idle<Wf2qPlus>(), 3U);
  EXPECT_LE(longest_wait_pkts_of_one_who_was_idle<Qfq>(), 5U);
  EXPECT_LE(longest_wait_pkts_of_one_who_was_idle<QfqPlus>(), 5U);
}

// The order of departures does not depend on where virtual time starts.
template <class D>
std::vector<uint32_t> order_from(uint64_t virtual_time) {
  const std::vector<TestFlow> flows{{.weight = 1}, {.weight = 3}, {.weight = 2, .lmax_bytes = 400}};
  D discipline({3, 64}, virtual_time);
  for (uint32_t f = 0; f < 3; ++f) {
    discipline.configure(f, {.weight = flows[f].weight, .lmax_bytes = flows[f].lmax_bytes});
  }
  Rng rng(3);
  std::vector<uint32_t> order;
  for (uint32_t k = 0; k < 60'000; ++k) {
    const uint32_t flow = rng.below(3);
    const uint32_t len = 64 + rng.below(flows[flow].lmax_bytes - 63);
    discipline.enqueue(Descriptor::of(1, len, flow, 0));
    Descriptor pkt;
    if (rng.below(10) != 0 && discipline.dequeue(pkt)) order.push_back(pkt.flow);
  }
  return order;
}

TEST(VirtualTime, WrapsUnseen) {
  const uint64_t just_before = 0ULL - (1ULL << 62);
  EXPECT_EQ(order_from<Wf2qPlus>(0), order_from<Wf2qPlus>(just_before));
  EXPECT_EQ(order_from<Qfq>(0), order_from<Qfq>(just_before));
  EXPECT_EQ(order_from<QfqPlus>(0), order_from<QfqPlus>(just_before));
}

}  // namespace fairness_test
}  // namespace batchplane::egress
