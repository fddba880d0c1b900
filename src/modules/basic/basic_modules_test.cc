// SPDX-License-Identifier: BSD-3-Clause
// basic_modules_test.cc - sink, null, merge, drop, counter and meter.
#include <gtest/gtest.h>

#include "module_harness.h"

namespace batchplane {
namespace {

std::vector<Bytes> some_frames(uint32_t n) {
  std::vector<Bytes> frames;
  for (uint32_t i = 0; i < n; ++i) {
    frames.push_back(make_frame({.port_src = static_cast<uint16_t>(i), .len_bytes = 60 + i}));
  }
  return frames;
}

TEST(Sink, TakesAndFreesAll) {
  ModuleHarness harness("sink");
  for (const uint32_t n : {1U, 32U, 256U}) {
    EXPECT_EQ(harness.run(some_frames(n)).consumed_pkts, n);
    EXPECT_EQ(harness.leaked_pkts(), 0U);
  }
  EXPECT_TRUE(harness.info().is_egress);
  harness.ctx().meter->flush(harness.ctx().now_ns);
  EXPECT_EQ(harness.ctx().meter->sent_pkts(), 1U + 32 + 256);
}

TEST(NullAndMerge, PassEverythingUntouched) {
  for (const char* kind : {"null", "merge"}) {
    ModuleHarness harness(kind);
    const std::vector<Bytes> frames = some_frames(40);
    EXPECT_EQ(harness.run(frames).at(0), frames);
    EXPECT_EQ(harness.run({Bytes{}}).outputs.size(), 1U);
  }
}

TEST(Drop, DropsEverythingWithItsReason) {
  ModuleHarness harness("drop");
  const Outcome outcome = harness.run(some_frames(40));
  EXPECT_EQ(outcome.dropped_for("discarded"), 40U);
  EXPECT_EQ(outcome.consumed_pkts, 0U);
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

TEST(Counter, CountsPacketsBytesAndSizes) {
  ModuleHarness harness("counter", {{"by_size", true}});
  harness.run({Bytes(0), Bytes(63), Bytes(64), Bytes(127), Bytes(128), Bytes(1500)});
  Value shown = harness.module().show();
  EXPECT_EQ(shown["pkts"].as_int(), 6);
  EXPECT_EQ(shown["bytes"].as_int(), 63 + 64 + 127 + 128 + 1500);
  EXPECT_EQ(shown["by_size_pkts"]["up_to_63"].as_int(), 2);
  EXPECT_EQ(shown["by_size_pkts"]["up_to_127"].as_int(), 2);
  EXPECT_EQ(shown["by_size_pkts"]["up_to_255"].as_int(), 1);
  EXPECT_EQ(shown["by_size_pkts"]["up_to_2047"].as_int(), 1);
  EXPECT_EQ(harness.command("reset")["pkts"].as_int(), 0);
  harness.run({Bytes(100)});
  shown = harness.module().show();
  EXPECT_EQ(shown["pkts"].as_int(), 1);
  EXPECT_EQ(shown["by_size_pkts"]["up_to_127"].as_int(), 1);
}

TEST(Counter, LongPacketsAndAdoption) {
  ModuleHarness old("counter", {{"by_size", true}}, 1, nullptr, 9000);
  old.run({Bytes(8999), Bytes(4095)});
  ModuleHarness young("counter", {{"by_size", true}});
  young.module().adopt(old.module());
  young.run({Bytes(60)});
  const Value shown = young.module().show();
  EXPECT_EQ(shown["pkts"].as_int(), 3);
  EXPECT_EQ(shown["by_size_pkts"]["longer"].as_int(), 1);
  EXPECT_EQ(shown["by_size_pkts"]["up_to_4095"].as_int(), 1);
}

TEST(Counter, WithoutSizesAndUnknownCommand) {
  ModuleHarness harness("counter");
  harness.run({Bytes(70)});
  EXPECT_EQ(harness.module().show(), Value(Dict{{"pkts", 1}, {"bytes", 70}}));
  EXPECT_THROW(harness.command("clear"), ConfigError);
}

TEST(Meter, RateOfTheLastWindow) {
  ModuleHarness harness("meter", {{"window_ns", 1'000'000}});
  for (uint64_t t = 1; t <= 11; ++t) {
    harness.set_now_ns(t * 100'000);
    harness.run({Bytes(100), Bytes(50)});
  }
  // The first batch opened the window; the batch 1 ms later closed it and is not counted in it.
  Value shown = harness.module().show();
  EXPECT_EQ(shown["window_ns"].as_int(), 1'000'000);
  EXPECT_DOUBLE_EQ(shown["rate_pps"].as_double(), 20'000);
  EXPECT_DOUBLE_EQ(shown["rate_bps"].as_double(), 1500 * 8 * 1000.0);
  EXPECT_EQ(shown["gap_max_ns"].as_int(), 100'000);
  EXPECT_EQ(shown["pkts"].as_int(), 22);
  EXPECT_EQ(shown["bytes"].as_int(), 11 * 150);
}

TEST(Meter, FallsToZeroWhenTrafficStops) {
  ModuleHarness harness("meter", {{"window_ns", 1'000'000}});
  harness.set_now_ns(1'000'000);
  harness.run({Bytes(100)});
  harness.set_now_ns(2'000'000);
  harness.housekeep();
  EXPECT_DOUBLE_EQ(harness.module().show()["rate_pps"].as_double(), 1000);
  harness.set_now_ns(3'500'000);
  harness.housekeep();
  const Value shown = harness.module().show();
  EXPECT_DOUBLE_EQ(shown["rate_pps"].as_double(), 0);
  EXPECT_DOUBLE_EQ(shown["peak_pps"].as_double(), 1000);
  EXPECT_EQ(shown["gap_max_ns"].as_int(), 2'500'000);
}

TEST(Meter, NothingYetAndAdoption) {
  ModuleHarness old("meter", {{"window_ns", 1'000'000}});
  EXPECT_DOUBLE_EQ(old.module().show()["rate_pps"].as_double(), 0);
  old.set_now_ns(1'000'000);
  old.run({Bytes(100)});
  ModuleHarness young("meter", {{"window_ns", 1'000'000}});
  young.module().adopt(old.module());
  young.set_now_ns(2'000'000);
  young.run({Bytes(100)});
  EXPECT_DOUBLE_EQ(young.module().show()["rate_pps"].as_double(), 1000);
  EXPECT_EQ(young.module().show()["pkts"].as_int(), 2);
}

}  // namespace
}  // namespace batchplane
