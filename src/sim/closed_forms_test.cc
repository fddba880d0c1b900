// SPDX-License-Identifier: BSD-3-Clause
// closed_forms_test.cc - buffers in the simulator against queueing theory and plain counting:
// within 1 %, or within four standard errors where chance decides.
//
// BATCHPLANE_LONG=1 takes twenty times the packets, and so a fourth to a fifth of the errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <numbers>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"

namespace batchplane::sim {
namespace closed_forms_test {

// Of an empty poll: time steps so short that time is nearly continuous.
constexpr double kPollNs = 0.125;

uint64_t scaled(uint64_t pkts) {
  const char* const is_long = std::getenv("BATCHPLANE_LONG");
  return is_long != nullptr && std::string(is_long) == "1" ? 20 * pkts : pkts;
}

struct Estimate {
  double mean = 0;
  double error = 0;  // standard error
};

// For values correlated only over short distances: each is the mean of a long stretch.
Estimate estimate_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  double squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  return {sum / n, std::sqrt(squares / (n - 1) / n)};
}

void expect_near(const Estimate& measured, double theory, const std::string& what) {
  EXPECT_LE(std::abs(measured.mean - theory), std::max(0.01 * theory, 4 * measured.error))
      << what << ": theory " << theory << ", simulated " << measured.mean << " +- "
      << measured.error;
  // A test whose own noise decides tests nothing.
  EXPECT_LE(measured.error, 0.02 * theory) << what;
}

// in -> work (trigger, cost per batch) -> out, with no other costs; an idle worker releases
// nothing.
SpecMaker one_buffer(uint32_t batch_pkts, uint32_t trigger_pkts, double batch_ns, double rate_pps,
                     exec::ArrivalKind arrivals) {
  SpecMaker maker(batch_pkts);
  maker.module("work", "cost", batch_ns, 0, trigger_pkts).module("out", "sink", 0, 0);
  maker.chain({"in", "work", "out"}).flow("f", {"in", "work", "out"}, {});
  maker.spec().loop.empty_poll_ns = kPollNs;
  maker.spec().pipeline.engine.is_idle_hold = true;
  maker.spec().pipeline.engine.stranding_limit_ns = 1'000'000'000'000;
  maker.source().ring_pkts = 1 << 16;
  maker.source().rate_pps = rate_pps;
  maker.source().arrivals = arrivals;
  return maker;
}

// Mean delay of all packets in each of n stretches of virtual time.
std::vector<double> mean_delays(Simulation& sim, uint32_t n, uint64_t stretch_ns) {
  std::vector<double> delays;
  sim.run_until(stretch_ns / 4);
  (void)sim.period();
  for (uint32_t i = 0; i < n; ++i) {
    sim.run_until(sim.now_ns() + stretch_ns);
    const exec::FlowPeriod flow = sim.period().flows[0];
    delays.push_back(static_cast<double>(flow.delay_sum_ns) / static_cast<double>(flow.pkts));
  }
  return delays;
}

// Fill time by position in the batch, first packet first. The batch leaves when its last packet
// arrives.
std::vector<std::vector<double>> fill_times(uint32_t q, double rate_pps, exec::ArrivalKind kind,
                                            uint64_t n_pkts) {
  Simulation sim(one_buffer(q, q, 0, rate_pps, kind).spec());
  sim.recorder().limit(n_pkts, 0);
  sim.update_recording();
  sim.run_until(static_cast<uint64_t>(1.2e9 * static_cast<double>(n_pkts) / rate_pps));
  std::vector<std::vector<double>> of_position(q);
  uint32_t position = 0;
  for (const Hop& hop : sim.recorder().hops) {
    if (hop.module != 1) continue;
    EXPECT_EQ(hop.batch_pkts, q);
    of_position[position].push_back(static_cast<double>(hop.start_ns - hop.arrive_ns));
    position = position + 1 == q ? 0 : position + 1;
  }
  return of_position;
}

TEST(ClosedForms, FillTimeUnderConstantArrivalsIsExact) {
  for (const uint32_t q : {2U, 7U, 32U}) {
    const auto times = fill_times(q, 2e6, exec::ArrivalKind::kConstant, 500 * q);
    double sum = 0;
    double n = 0;
    for (uint32_t i = 0; i < q; ++i) {
      ASSERT_GT(times[i].size(), 400U);
      for (const double ns : times[i]) {
        EXPECT_NEAR(ns, (q - 1 - i) * 500.0, 1) << "position " << i;  // whole nanoseconds
        sum += ns;
        n += 1;
      }
    }
    EXPECT_NEAR(sum / n, (q - 1) / 2.0 * 500, 0.01 * (q - 1) / 2.0 * 500);
  }
}

TEST(ClosedForms, FillTimeUnderPoissonArrivals) {
  const uint32_t q = 16;
  const auto times = fill_times(q, 1e6, exec::ArrivalKind::kPoisson, scaled(160'000));
  std::vector<double> per_batch(times[q - 1].size(), 0);
  for (uint32_t i = 0; i < q; ++i) {
    if (i + 1 < q) expect_near(estimate_of(times[i]), (q - 1 - i) * 1000.0, "position");
    for (size_t b = 0; b < per_batch.size(); ++b) per_batch[b] += times[i][b] / q;
  }
  expect_near(estimate_of(per_batch), (q - 1) / 2.0 * 1000, "mean over positions");
}

// The first packet of a batch finds an empty buffer, and its age limit starts. Of the packets that
// arrive within the limit, q - 1 at most join it: E[min(q, 1 + N)] = 1 + sum_{k=1}^{q-1} P(N >= k).
TEST(ClosedForms, MeanBatchUnderTriggerAndAgeLimit) {
  for (const auto& [q, mean] : {std::pair{32U, 4.0}, {32U, 20.0}, {32U, 31.0}, {8U, 12.0}}) {
    SpecMaker maker = one_buffer(32, q, 0, 1e6, exec::ArrivalKind::kPoisson);
    maker.spec().pipeline.modules[1].age_limit_ns = static_cast<uint64_t>(mean * 1000);
    Simulation sim(maker.spec());
    double term = std::exp(-mean);  // P(N = k)
    double at_least = 1;            // P(N >= k)
    double expected = 1;
    for (uint32_t k = 1; k < q; ++k) {
      at_least -= term;
      term *= mean / k;
      expected += at_least;
    }
    std::vector<double> batches;
    std::vector<double> full;
    sim.run_until(1'000'000);
    (void)sim.period();
    for (uint32_t i = 0; i < 40; ++i) {
      sim.run_until(sim.now_ns() + scaled(10'000'000));
      const exec::ModulePeriod work = sim.period().modules[1];
      batches.push_back(static_cast<double>(work.pkts) / static_cast<double>(work.batches));
      const auto n_full = static_cast<double>(work.causes[0].firings);
      full.push_back(n_full / static_cast<double>(work.batches));
      EXPECT_EQ(work.causes[0].firings + work.causes[1].firings, work.batches);
    }
    const std::string what = "trigger " + std::to_string(q) + ", " + std::to_string(mean);
    expect_near(estimate_of(batches), expected, what);
    // at_least is now P(N >= q - 1): the share of batches released by the trigger.
    const Estimate share = estimate_of(full);
    EXPECT_NEAR(share.mean, at_least, std::max(4 * share.error, 1e-4)) << what;
  }
}

// Batches of one, constant service s, Poisson input: W = rho s / (2 (1 - rho)).
TEST(ClosedForms, WaitingInMD1) {
  constexpr double kServiceNs = 1000;
  for (const double rho : {0.3, 0.6, 0.8}) {
    SpecMaker maker = one_buffer(1, 0, kServiceNs, rho * 1e6, exec::ArrivalKind::kPoisson);
    Simulation sim(maker.spec());
    std::vector<double> waits = mean_delays(sim, 60, scaled(20'000'000));
    for (double& wait : waits) wait -= kServiceNs;
    expect_near(estimate_of(waits), rho * kServiceNs / (2 * (1 - rho)),
                "rho " + std::to_string(rho));
  }
}

// Mean waiting of a full group of k before its service of constant length s, Poisson input of rate
// r; a = r s is the mean number that comes during a service.
//
// Q, the packets left behind when a group departs, follows Q' = max(Q - k, 0) + A with A ~
// Poisson(a), whether the server waited for the group to fill or not. With p_j = P(Q = j):
//   E[z^Q] (z^k - A(z)) = A(z) sum_{j<k} p_j (z^k - z^j),  A(z) = exp(a (z - 1)).
// The left side vanishes at the k roots of z^k = A(z) in the unit disc, 1 and z_1 .. z_{k-1}; so
//   E[z^Q] = (k - a) A(z) (z - 1) / (z^k - A(z)) prod (z - z_l) / (1 - z_l),
//   E[Q]   = a + sum 1 / (1 - z_l) - (k (k - 1) - a^2) / (2 (k - a)).
// Those left behind are those that came after the group's last packet, while it waited and was
// served, and they are independent of its waiting: E[Q] = r (W + s).
double bulk_waiting_ns(uint32_t k, double a, double service_ns) {
  std::complex<double> sum = 0;
  for (uint32_t l = 1; l < k; ++l) {
    const auto unit = std::polar(1.0, 2 * std::numbers::pi * l / k);
    std::complex<double> z = 0;
    // z = unit * exp(a (z - 1) / k) contracts, by a / k at most.
    for (int i = 0; i < 2000; ++i) z = unit * std::exp(a * (z - 1.0) / static_cast<double>(k));
    EXPECT_LT(std::abs(std::pow(z, k) - std::exp(a * (z - 1.0))), 1e-12);
    sum += 1.0 / (1.0 - z);
  }
  const double q = a + sum.real() - (k * (k - 1.0) - a * a) / (2 * (k - a));
  return (q / a - 1) * service_ns;
}

TEST(ClosedForms, BulkQueueOfOneIsMD1) {
  EXPECT_NEAR(bulk_waiting_ns(1, 0.6, 1000), 0.6 * 1000 / (2 * 0.4), 1e-9);
}

// The same mean from the chain itself: powers of its transition matrix, cut off far out.
TEST(ClosedForms, RootsAgreeWithTheChain) {
  const uint32_t k = 4;
  const double a = 3.2;
  constexpr uint32_t kStates = 400;
  std::vector<double> arrivals(kStates, 0);
  arrivals[0] = std::exp(-a);
  for (uint32_t i = 1; i < kStates; ++i) arrivals[i] = arrivals[i - 1] * a / i;
  std::vector<double> p(kStates, 0);
  p[0] = 1;
  for (int step = 0; step < 600; ++step) {
    std::vector<double> next(kStates, 0);
    for (uint32_t from = 0; from < kStates; ++from) {
      const uint32_t left = from > k ? from - k : 0;
      for (uint32_t n = 0; n < 40 && left + n < kStates; ++n) {
        next[left + n] += p[from] * arrivals[n];
      }
    }
    p = next;
  }
  double mean = 0;
  for (uint32_t i = 0; i < kStates; ++i) mean += i * p[i];
  EXPECT_NEAR((mean / a - 1) * 1000, bulk_waiting_ns(k, a, 1000), 1e-3);
}

// A packet waits (k - 1) / 2 interarrival times for its group on average, and the group waits for
// the server.
TEST(ClosedForms, FixedBatchesUnderPoissonArrivals) {
  constexpr double kServiceNs = 8000;
  for (const auto& [k, rho] : {std::pair{2U, 0.8}, {8U, 0.5}, {8U, 0.9}, {32U, 0.8}}) {
    const double rate_per_ns = rho * k / kServiceNs;
    SpecMaker maker = one_buffer(32, k, kServiceNs, rate_per_ns * 1e9, exec::ArrivalKind::kPoisson);
    Simulation sim(maker.spec());
    const auto stretch_ns =
        static_cast<uint64_t>(static_cast<double>(scaled(40'000)) / rate_per_ns);
    const double theory =
        (k - 1) / (2 * rate_per_ns) + bulk_waiting_ns(k, rho * k, kServiceNs) + kServiceNs;
    expect_near(estimate_of(mean_delays(sim, 40, stretch_ns)), theory,
                std::to_string(k) + " at " + std::to_string(rho));
    const exec::Snapshot now = sim.snapshot(false);
    EXPECT_EQ(now.modules[1].pkts, now.modules[1].batches * k);
  }
}

// k batches of k packets, one packet for each of k branches, at one unit per batch and one per
// packet: branches run k * k batches of one, or k batches of k.
TEST(ClosedForms, SplittingCostsTwoKSquaredOrKPlusKSquared) {
  for (const uint32_t k : {2U, 4U, 8U, 16U, 32U}) {
    for (const bool is_buffered : {false, true}) {
      SpecMaker maker = make_tree(k, 1000, 1000, is_buffered ? k : 0);
      maker.spec().pipeline.engine.batch_pkts = k;
      maker.spec().pipeline.engine.is_idle_hold = true;
      maker.source().is_saturating = true;
      Simulation sim(maker.spec());
      sim.recorder().limit(0, 1'000'000);
      sim.update_recording();
      // Staggered first releases are over after one round; then ten rounds.
      const uint64_t round_ns = 1000 * (is_buffered ? k + k * k : 2 * k * k);
      sim.run_until(2 * round_ns);
      const uint64_t begin_ns = sim.now_ns();
      sim.run_until(begin_ns + 10 * round_ns);
      uint64_t worked_ns = 0;
      uint64_t pkts = 0;
      for (const Execution& run : sim.recorder().executions) {
        if (run.start_ns < begin_ns || run.start_ns >= begin_ns + 10 * round_ns) continue;
        if (run.end_ns == run.start_ns) continue;  // splitter and ends are free
        EXPECT_EQ(run.batch_pkts, is_buffered ? k : 1U);
        worked_ns += run.end_ns - run.start_ns;
        pkts += run.batch_pkts;
      }
      // A run that straddles begin or end shifts both counts alike: the cost per packet stays
      // exact.
      EXPECT_EQ(worked_ns * k * k, pkts * round_ns) << k;
      EXPECT_NEAR(static_cast<double>(pkts), 10.0 * k * k, k) << k;
    }
  }
}

// Full input, full batches: a packet takes its share of each batch's cost, and nothing else.
TEST(ClosedForms, SaturationRateOfATree) {
  for (const uint32_t trigger : {8U, 32U}) {
    SpecMaker maker = make_tree(16, 900, 12, trigger, 50);
    maker.spec().loop.poll_per_batch_ns = 20;
    maker.spec().loop.poll_per_pkt_ns = 2;
    maker.spec().loop.egress_per_pkt_ns = 1;
    maker.spec().loop.firing_ns = 5;
    maker.spec().pipeline.engine.is_idle_hold = true;
    maker.source().is_saturating = true;
    maker.source().order = exec::Order::kRandom;
    Simulation sim(maker.spec());
    sim.run_until(1'000'000);
    (void)sim.period();
    sim.run_until(21'000'000);
    uint64_t pkts = 0;
    for (const exec::FlowPeriod& flow : sim.period().flows) pkts += flow.pkts;
    const double pkt_ns = (20 + 50) / 32.0 + 2 + 1 + 12 + (900 + 5) / static_cast<double>(trigger);
    EXPECT_NEAR(static_cast<double>(pkts) / 20e6, 1 / pkt_ns, 0.002 / pkt_ns);
  }
}

// Unbuffered, packets go to leaves at random: 16 (1 - (15/16)^32) leaves get some of a batch of 32.
TEST(ClosedForms, SaturationRateOfATreeWithoutBuffers) {
  SpecMaker maker = make_tree(16, 900, 12, 0, 50);
  maker.source().is_saturating = true;
  maker.source().order = exec::Order::kRandom;
  Simulation sim(maker.spec());
  sim.run_until(1'000'000);
  (void)sim.period();
  sim.run_until(101'000'000);
  uint64_t pkts = 0;
  for (const exec::FlowPeriod& flow : sim.period().flows) pkts += flow.pkts;
  const double leaves = 16 * (1 - std::pow(15.0 / 16, 32));
  const double batch_ns = 50 + 900 * leaves + 12 * 32;
  EXPECT_NEAR(static_cast<double>(pkts) / 100e6, 32 / batch_ns, 0.01 * 32 / batch_ns);
}

}  // namespace closed_forms_test
}  // namespace batchplane::sim
