// SPDX-License-Identifier: BSD-3-Clause
// stage_test.cc - simulated stages by hand: when batches are submitted, when devices finish them,
// and the order in which packets come out.
#include "sim/stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "exec/node.h"
#include "sim/stage_rig.h"

namespace batchplane::sim {
namespace stage_test {

// 4 packets of 100 bytes: 1240
const BatchLaw kLaw{.batch_ns = 960, .pkt_ns = 10, .byte_ns = 0.5, .length_ns = 0.4};
const std::vector<uint32_t> kNothing;

TEST(SimStage, EndsJobsWhenTheLawSays) {
  StageRig rig(stage_on("gpu", kLaw, 4), {make_device()});
  rig.put(4, 1000);
  EXPECT_EQ(rig.poll(1000), kNothing);
  EXPECT_EQ(rig.next_ns(), 2240U);
  rig.put(4, 1500);
  EXPECT_EQ(rig.poll(1500), kNothing);  // starts when the first batch has ended
  EXPECT_EQ(rig.poll(2239), kNothing);
  EXPECT_EQ(rig.poll(2240), numbers(0, 4));
  EXPECT_EQ(rig.next_ns(), 3480U);
  EXPECT_EQ(rig.poll(3479), kNothing);
  EXPECT_EQ(rig.poll(3480), numbers(4, 4));
  EXPECT_EQ(rig.jobs("full"), 2);
  EXPECT_EQ(rig.show()["mean_job_pkts"].as_double(), 4);
  EXPECT_EQ(rig.show()["mean_job_ns"].as_double(), (1240 + 1980) / 2.0);
  const Value device = rig.show()["devices"].as_list().front();
  EXPECT_EQ(device["mean_run_ns"].as_double(), 1240);
  EXPECT_EQ(device["busy_share"].as_double(), 2480 / 3480.0);
}

// A job takes the device for 300 ns, and lasts for 1000.
TEST(SimStage, ADeviceWorksOnSeveralJobsAtOnce) {
  const BatchTable table{{2}, {100}, {1000}, {300}};
  const auto device = make_device();
  StageRig rig(stage_on("gpu", {.table = std::make_shared<const BatchTable>(table)}, 2), {device});
  rig.put(4, 0);
  for (uint32_t job = 0; job < 2; ++job) EXPECT_EQ(rig.poll(0), kNothing);
  EXPECT_EQ(rig.poll(999), kNothing);
  EXPECT_EQ(rig.poll(1000), numbers(0, 2));
  EXPECT_EQ(rig.poll(1299), kNothing);
  EXPECT_EQ(rig.poll(1300), numbers(2, 2));
  EXPECT_EQ(device->busy_ns(), 600U);
}

TEST(SimStage, StagesShareADeviceInTheOrderInWhichTheyHandOver) {
  const auto device = make_device();
  StageRig first(stage_on("gpu", {.batch_ns = 1000}, 2), {device});
  StageRig second(stage_on("gpu", {.batch_ns = 300}, 2), {device});
  first.put(2, 0);
  second.put(2, 10);
  EXPECT_EQ(first.poll(0), kNothing);
  EXPECT_EQ(second.poll(10), kNothing);
  EXPECT_EQ(first.next_ns(), 1000U);
  EXPECT_EQ(second.next_ns(), 1300U);
  EXPECT_EQ(second.poll(1299), kNothing);
  EXPECT_EQ(second.poll(1300), numbers(0, 2));
  EXPECT_EQ(device->busy_ns(), 1300U);
}

TEST(SimStage, ThreadsOfThisMachineRunStagesSideBySide) {
  const auto device = make_device("cores", 2);
  StageRig first(stage_on("cpu", {.batch_ns = 1000}, 2), {device});
  StageRig second(stage_on("cpu", {.batch_ns = 300}, 2), {device});
  first.put(2, 0);
  second.put(2, 0);
  (void)first.poll(0);
  (void)second.poll(0);
  EXPECT_EQ(first.next_ns(), 1000U);
  EXPECT_EQ(second.next_ns(), 300U);
}

TEST(SimStage, KeepsNoMoreUnderWayThanItsDepth) {
  StageSpec spec = stage_on("gpu", {.batch_ns = 1000}, 4);
  spec.depth = 1;
  StageRig rig(spec, {make_device()}, 4);
  rig.put(12, 0);
  EXPECT_EQ(rig.poll(0), kNothing);
  EXPECT_EQ(rig.jobs("full"), 1);
  EXPECT_EQ(rig.poll(500), kNothing);
  EXPECT_EQ(rig.jobs("full"), 1);
  EXPECT_EQ(rig.next_ns(), 1000U);  // neither the full batch nor the ring gives an earlier time
  EXPECT_EQ(rig.poll(1200), numbers(0, 4));
  EXPECT_EQ(rig.poll(1200), kNothing);  // submitted only now, although the device was free earlier
  EXPECT_EQ(rig.poll(1300), kNothing);  // takes in the third batch
  EXPECT_EQ(rig.next_ns(), 2200U);
}

TEST(SimStage, SendsWhatIsAsOldAsItsAgeLimit) {
  StageSpec spec = stage_on("gpu", {.batch_ns = 50}, 8);
  spec.is_idle_hold = true;
  spec.age_limit_ns = 500;
  StageRig rig(spec, {make_device()});
  rig.put(1, 100);
  rig.put(2, 300);
  EXPECT_EQ(rig.poll(300), kNothing);
  EXPECT_EQ(rig.next_ns(), 600U);
  EXPECT_EQ(rig.poll(599), kNothing);
  EXPECT_EQ(rig.next_ns(), 600U);
  EXPECT_EQ(rig.poll(600), kNothing);
  EXPECT_EQ(rig.jobs("age"), 1);
  EXPECT_EQ(rig.poll(650), numbers(0, 3));
}

TEST(SimStage, SendsWhatThereIsWhenNothingIsUnderWayAndNothingComes) {
  StageRig rig(stage_on("gpu", {.batch_ns = 1000}, 8), {make_device()});
  rig.put(3, 0);
  EXPECT_EQ(rig.poll(0), kNothing);
  EXPECT_EQ(rig.jobs("idle"), 0);  // packets have just come
  EXPECT_EQ(rig.next_ns(), 0U);
  EXPECT_EQ(rig.poll(10), kNothing);
  EXPECT_EQ(rig.jobs("idle"), 1);
  rig.put(2, 20);
  EXPECT_EQ(rig.poll(20), kNothing);
  EXPECT_EQ(rig.poll(30), kNothing);
  EXPECT_EQ(rig.jobs("idle"), 1);  // a batch is under way
  EXPECT_EQ(rig.poll(1010), numbers(0, 3));
  EXPECT_EQ(rig.jobs("idle"), 2);
  EXPECT_EQ(rig.poll(2010), numbers(3, 2));
}

TEST(SimStage, HoldsWhereItIsToldTo) {
  StageSpec spec = stage_on("gpu", {.batch_ns = 1000}, 8);
  spec.is_idle_hold = true;
  StageRig rig(spec, {make_device()});
  rig.put(3, 0);
  for (uint64_t at_ns = 0; at_ns < spec.age_limit_ns; at_ns += 1000) {
    EXPECT_EQ(rig.poll(at_ns), kNothing);
  }
  EXPECT_EQ(rig.jobs("idle"), 0);
  (void)rig.poll(spec.age_limit_ns);
  EXPECT_EQ(rig.jobs("age"), 1);
}

TEST(SimStage, TakesAlongWhatIsThereAlready) {
  StageSpec spec = stage_on("gpu", {.batch_ns = 1000}, 4);
  spec.max_batch_pkts = 10;
  StageRig rig(spec, {make_device()});
  rig.put(25, 0);
  (void)rig.poll(0);
  EXPECT_EQ(rig.poll(1000), numbers(0, 10));
}

TEST(SimStage, GivesOutInOrderWhateverPlaceIsFaster) {
  StageSpec spec = stage_on("slow", {.batch_ns = 5000}, 2);
  spec.places.push_back({"fast", {.batch_ns = 100}, 1});
  StageRig rig(spec, {make_device(), make_device()}, 2);
  rig.put(4, 0);
  EXPECT_EQ(rig.poll(0), kNothing);
  EXPECT_EQ(rig.poll(10), kNothing);
  EXPECT_EQ(rig.jobs("full"), 2);
  EXPECT_EQ(rig.poll(4999), kNothing);  // the second batch ended long ago
  EXPECT_EQ(rig.poll(5000), numbers(0, 2));
  EXPECT_EQ(rig.poll(5000), numbers(2, 2));
}

TEST(SimStage, DividesPacketsByShares) {
  StageSpec spec = stage_on("a", {.batch_ns = 1}, 10);
  spec.places.front().share = 0.75;
  spec.places.push_back({"b", {.batch_ns = 1}, 0.25});
  spec.places.push_back({"c", {.batch_ns = 1}, 0});
  StageRig rig(spec, {make_device(), make_device(), make_device()});
  for (uint64_t at_ns = 0; at_ns < 4000; at_ns += 10) {
    rig.put(10, at_ns);
    (void)rig.poll(at_ns);
  }
  const Dict shown = rig.show();
  const List& places = shown.at("devices").as_list();
  EXPECT_EQ(places[0]["jobs"].as_int(), 300);
  EXPECT_EQ(places[1]["jobs"].as_int(), 100);
  EXPECT_EQ(places[2]["jobs"].as_int(), 0);
}

TEST(SimStage, InlineTakesTheWorkersTimeInBatchesOfTheEngine) {
  StageRig rig(stage_on(placement::kInline, {}, 100), {nullptr});
  rig.stage().set_cost({200, 10}, 32);
  rig.put(100, 0);
  EXPECT_EQ(rig.poll(0), numbers(0, 32));
  EXPECT_EQ(rig.now_ns(), 520U);
  EXPECT_EQ(rig.next_ns(), 0U);
  EXPECT_EQ(rig.poll(520), numbers(32, 32));
  EXPECT_EQ(rig.poll(1040), numbers(64, 32));
  EXPECT_EQ(rig.poll(1560), numbers(96, 4));
  EXPECT_EQ(rig.now_ns(), 1800U);
  EXPECT_EQ(rig.show()["inline_pkts"].as_int(), 100);
  EXPECT_EQ(rig.show()["devices"].as_list().front()["mean_run_ns"].as_double(), 1800);
}

struct SeenJob {
  uint64_t submitted_ns;
  uint32_t n_pkts;
};

// Packets finished by now_ns: batches run one after the other from their submission, and come out
// in that order.
uint64_t pkts_done_by(const std::vector<SeenJob>& jobs, uint64_t now_ns) {
  uint64_t free_ns = 0;
  uint64_t done = 0;
  for (const SeenJob& job : jobs) {
    free_ns = std::max(free_ns, job.submitted_ns) + 700 + 9 * uint64_t{job.n_pkts};
    if (free_ns <= now_ns) done += job.n_pkts;
  }
  return done;
}

TEST(SimStage, RandomLoadsComeOutWhenJobsReplayedSay) {
  Rng rng(7);
  for (uint32_t run = 0; run < 40; ++run) {
    StageSpec spec = stage_on("gpu", {.batch_ns = 700, .pkt_ns = 9}, 32 + rng.below(100));
    spec.depth = 1 + rng.below(4);
    spec.is_idle_hold = rng.below(2) == 0;
    spec.age_limit_ns = rng.below(20'000);
    StageRig rig(spec, {make_device()});
    std::vector<SeenJob> jobs;
    uint64_t put = 0;
    uint64_t out = 0;
    int64_t n_jobs = 0;
    int64_t job_pkts = 0;
    uint64_t now_ns = 0;
    for (uint32_t step = 0; step < 600; ++step) {
      now_ns += rng.below(1'500);
      const uint32_t n = rng.below(3) == 0 ? rng.below(120) : 0;
      put += n;
      rig.put(n, now_ns);
      const std::vector<uint32_t> given = rig.poll(now_ns);
      EXPECT_EQ(given, numbers(static_cast<uint32_t>(out), static_cast<uint32_t>(given.size())));
      const Dict shown = rig.show();
      const int64_t pkts = shown.at("pkts").as_int() - job_pkts;
      int64_t all_jobs = 0;
      for (const char* const cause : exec::kCauseNames) all_jobs += rig.jobs(cause);
      // Of several batches submitted at one poll, all but the last are full.
      for (int64_t j = n_jobs; j < all_jobs; ++j) {
        const bool is_last = j + 1 == all_jobs;
        const int64_t before = (all_jobs - n_jobs - 1) * spec.batch_pkts;
        jobs.push_back({now_ns, is_last ? static_cast<uint32_t>(pkts - before) : spec.batch_pkts});
      }
      n_jobs = all_jobs;
      job_pkts += pkts;
      ASSERT_EQ(given.size(), std::min<uint64_t>(32, pkts_done_by(jobs, now_ns) - out));
      out += given.size();
      ASSERT_EQ(put, out + rig.held_pkts());
    }
    EXPECT_GT(out, 1000U);
  }
}

// Between two polls nothing happens before next_ns().
TEST(SimStage, NothingHappensBeforeItSaysSo) {
  Rng rng(11);
  uint32_t n_skipped = 0;
  for (uint32_t run = 0; run < 40; ++run) {
    StageSpec spec = stage_on("gpu", {.batch_ns = 900, .pkt_ns = 5}, 16 + rng.below(40));
    spec.depth = 1 + rng.below(3);
    spec.is_idle_hold = rng.below(2) == 0;
    spec.age_limit_ns = rng.below(5'000);
    StageRig often(spec, {make_device()});
    StageRig seldom(spec, {make_device()});
    for (uint64_t now_ns = 0; now_ns < 40'000; now_ns += 10) {
      const uint32_t n = rng.below(60) == 0 ? rng.below(50) : 0;
      often.put(n, now_ns);
      seldom.put(n, now_ns);
      const bool must_poll = seldom.next_ns() <= now_ns;
      n_skipped += must_poll ? 0 : 1;
      const auto given = often.poll(now_ns);
      ASSERT_EQ(must_poll ? seldom.poll(now_ns) : kNothing, given) << "at " << now_ns;
    }
    EXPECT_EQ(often.show()["jobs"], seldom.show()["jobs"]);
    EXPECT_EQ(often.held_pkts(), seldom.held_pkts());
  }
  EXPECT_GT(n_skipped, 10'000U);
}

}  // namespace stage_test
}  // namespace batchplane::sim
