// SPDX-License-Identifier: BSD-3-Clause
// stages_test.cc - stages as modules of the program, against a device that works off one batch after the
// other.
#include "slo/estimate/stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace batchplane::slo {
namespace stages_test {

constexpr uint32_t kMaxJobPkts = 1024;
constexpr uint64_t kPeriodNs = 10'000'000;

struct Given {
  double rate_pkts_per_ns;
  BatchLaw law;
};

// Stages of one device, each polled by a task of its own.
struct Rig {
  explicit Rig(const std::vector<Given>& all, bool is_idle_hold = true) {
    for (const Given& given : all) {
      const auto i = static_cast<uint32_t>(model.inputs.size());
      model.modules.push_back({.name = "stage", .task = i, .has_buffer = true});
      model.tasks.push_back({.inputs = {i}});
      model.inputs.push_back({.module = i,
                              .task = i,
                              .is_queue = true,
                              .is_stage = true,
                              .max_job_pkts = kMaxJobPkts});
      const auto pkts = static_cast<uint64_t>(given.rate_pkts_per_ns * kPeriodNs);
      exec::InputPeriod input{.offered_pkts = pkts, .taken_pkts = pkts};
      input.stage = {.batch_pkts = 64,
                     .age_limit_ns = 100'000,
                     .is_idle_hold = is_idle_hold,
                     .device = &device,
                     .law = given.law};
      snapshot.inputs.push_back(input);
      snapshot.tasks.push_back({.in_pkts = pkts});
      program.modules.emplace_back();
    }
    snapshot.period_ns = kPeriodNs;
  }
  // Batches of so many packets came back, each after this time.
  void came_back(size_t i, uint64_t job_pkts, uint64_t run_ns, uint64_t job_ns) {
    exec::StageTotals& totals = snapshot.inputs[i].stage.totals;
    const uint64_t jobs = snapshot.inputs[i].taken_pkts / job_pkts;
    totals = {.sent_jobs = jobs, .sent_pkts = jobs * job_pkts, .jobs = jobs};
    totals.pkts = jobs * job_pkts;
    totals.run_ns = jobs * run_ns;
    totals.job_ns = jobs * job_ns;
  }
  void update() {
    if (stages == nullptr) stages = std::make_unique<Stages>(model);
    stages->update(snapshot, 0, program);
  }
  int device = 0;
  Model model;
  Snapshot snapshot;
  Program program;
  std::unique_ptr<Stages> stages;
};

// How much of its time the device takes for these batches.
double busy(const std::vector<Given>& stages, const std::vector<double>& batch_pkts) {
  double share = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    share += stages[i].rate_pkts_per_ns / batch_pkts[i] * stages[i].law.busy_ns(batch_pkts[i], 0);
  }
  return share;
}

TEST(Stages, TheLeastBatchesAreThoseThatTheDeviceKeepsUpWith) {
  const std::vector<std::vector<Given>> cases = {
      {{1e-3, {.batch_ns = 20'000, .pkt_ns = 50}}},
      {{5e-4, {.batch_ns = 20'000, .pkt_ns = 50}}, {1e-4, {.batch_ns = 40'000, .pkt_ns = 500}}},
      {{2e-3, {.batch_ns = 5'000, .pkt_ns = 100}},
       {2e-3, {.batch_ns = 5'000, .pkt_ns = 100}},
       {1e-5, {.batch_ns = 90'000}}}};
  for (const std::vector<Given>& given : cases) {
    Rig rig(given);
    rig.update();
    std::vector<double> least;
    std::vector<double> fewer;
    std::vector<double> fill_ns;
    for (uint32_t s = 0; s < given.size(); ++s) {
      least.push_back(rig.stages->batch_pkts(s, 0));
      fewer.push_back(std::max(1.0, 0.75 * least.back()));
      fill_ns.push_back(least.back() / given[s].rate_pkts_per_ns);
      EXPECT_EQ(rig.program.modules[s].least_pkts, least.back());
      EXPECT_EQ(rig.program.modules[s].max_pkts, kMaxJobPkts);
      // A batch that is only as old as this is one with which the device is just not overloaded.
      EXPECT_LT(rig.stages->least_limit_ns(s), fill_ns.back());
    }
    EXPECT_LE(busy(given, least), 0.81);
    EXPECT_GT(busy(given, fewer), 0.81);
    // No stage waits much longer for its batch than the others do, but for whole packets.
    const auto [shortest, longest] = std::ranges::minmax(fill_ns);
    for (uint32_t s = 0; s < given.size(); ++s) {
      EXPECT_NEAR(fill_ns[s], shortest, 1.02 / given[s].rate_pkts_per_ns + 0.02 * longest);
    }
  }
}

// A device without time for all gets batches whose fixed costs hardly count.
TEST(Stages, AnOverloadedDeviceGetsLargeBatches) {
  Rig rig({{1e-3, {.batch_ns = 20'000, .pkt_ns = 2000}}});
  rig.update();
  EXPECT_GE(rig.stages->batch_pkts(0, 0), 400U);
}

// Nothing that a light stage does helps a device that another one overloads.
TEST(Stages, AnOverloadedDeviceKeepsNoOtherStageWaiting) {
  const BatchLaw law{.batch_ns = 5'000, .pkt_ns = 1'000};
  Rig rig({{1.2e-3, law}, {2e-6, law}});
  rig.update();
  EXPECT_LE(rig.stages->batch_pkts(1, 0), 2U);
  EXPECT_LE(rig.stages->least_limit_ns(1), 20.1 * 2 * law.busy_ns(1, 0));
  // With threads enough for all, each stage has its own.
  Rig apart({{1.2e-3, law}, {2e-4, law}});
  for (exec::InputPeriod& input : apart.snapshot.inputs) input.stage.device_threads = 2;
  apart.update();
  Rig alone({{2e-4, law}});
  alone.update();
  EXPECT_EQ(apart.stages->batch_pkts(1, 0), alone.stages->batch_pkts(0, 0));
}

TEST(Stages, WhatTheWorkerRunsCostsNoBatches) {
  Rig rig({{1e-3, {.batch_ns = 20'000, .pkt_ns = 50}}});
  rig.snapshot.inputs[0].stage.device = nullptr;
  rig.update();
  EXPECT_FALSE(rig.stages->is_decided(0));
  EXPECT_EQ(rig.program.modules[0].cost_per_batch_ns, 0);
  EXPECT_EQ(rig.program.modules[0].away_ns(32), 0);
}

TEST(Stages, WhatBatchesTookCorrectsTheLaw) {
  Rig rig({{1e-3, {.batch_ns = 20'000, .pkt_ns = 50}}});
  rig.came_back(0, 64, 2 * (20'000 + 64 * 50), 2 * (20'000 + 64 * 50) + 7000);
  rig.update();
  const ProgramModule& module = rig.program.modules[0];
  EXPECT_NEAR(module.away_ns(64), 2 * (20'000 + 64 * 50) + 7000, 1);
  EXPECT_NEAR(module.away_pkt_ns, 100, 1e-9);
  EXPECT_GT(module.least_pkts, 45) << "twice the time, so more than twice the packets";
}

// Batches are then what comes while the device is busy, and only limits cut them.
TEST(Stages, WhereNothingIsWaitedForBatchesMayBeAsLargeAsTheyGet) {
  Rig rig({{1e-3, {.batch_ns = 20'000, .pkt_ns = 50}}}, false);
  rig.came_back(0, 22, 21'100, 22'000);
  rig.update();
  EXPECT_EQ(rig.stages->batch_pkts(0, 0), kMaxJobPkts);
  EXPECT_EQ(rig.program.modules[0].max_pkts, 0U) << "no trigger to choose";
  EXPECT_EQ(rig.program.modules[0].least_pkts, 22) << "what came meanwhile waited for that";
}

TEST(Stages, WhatPlacementDecidesIsTimeAndNoChoice) {
  Rig rig({{1e-3, {.batch_ns = 20'000, .pkt_ns = 50}}});
  rig.model.inputs[0].max_job_pkts = 0;
  rig.came_back(0, 100, 25'000, 30'000);
  rig.update();
  EXPECT_FALSE(rig.stages->is_decided(0));
  EXPECT_EQ(rig.program.modules[0].max_pkts, 0U);
  EXPECT_NEAR(rig.program.modules[0].away_ns(100), 30'000, 1);
}

// The rate of a period is chance: that alone changes no batch.
TEST(Stages, TheLeastBatchRestsWhileTheLoadDoes) {
  Rig rig({{1e-3, {.batch_ns = 20'000, .pkt_ns = 50}}});
  rig.update();
  const uint32_t first = rig.stages->batch_pkts(0, 0);
  uint32_t changes = 0;
  uint32_t last = first;
  for (uint32_t i = 0; i < 50; ++i) {
    const double factor = i % 2 == 0 ? 0.97 : 1.03;
    rig.snapshot.inputs[0].offered_pkts = static_cast<uint64_t>(factor * 1e-3 * kPeriodNs);
    rig.update();
    changes += rig.stages->batch_pkts(0, 0) != last ? 1 : 0;
    last = rig.stages->batch_pkts(0, 0);
  }
  EXPECT_LE(changes, 2U);
}

}  // namespace stages_test
}  // namespace batchplane::slo
