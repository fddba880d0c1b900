// SPDX-License-Identifier: BSD-3-Clause
// statistics.cc - what a reader of all statistics takes from the rate: 100 times a second against
// never.
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "common/engine_bench.h"
#include "common/environment.h"
#include "common/report.h"

namespace {

constexpr uint32_t kMemoryMb = 512;
constexpr auto kPeriod = std::chrono::milliseconds(10);
constexpr uint32_t kPeriods = 20;  // of one trial: 0.2 s
constexpr double kReadsPerSecond = 100;
constexpr uint32_t kTimedReads = 200;

// What the reader's core does in each period: sleep on, read, or be as busy as if it read.
enum class Reader : uint8_t { kNone, kReading, kBusy };

void spend(uint64_t ns) {
  const batchplane::TscClock& clock = batchplane::TscClock::instance();
  for (const uint64_t until_ns = clock.now_ns() + ns; clock.now_ns() < until_ns;) {
  }
}

// Time that a reading takes on the reader's own core.
uint64_t reader_ns(batchplane::Engine& engine) {
  const batchplane::TscClock& clock = batchplane::TscClock::instance();
  const uint64_t start_ns = clock.now_ns();
  for (uint32_t i = 0; i < kTimedReads; ++i) (void)engine.snapshot(true);
  return (clock.now_ns() - start_ns) / kTimedReads;
}

// Packets that the running engine took in during one trial.
uint64_t watch(batchplane::Engine& engine, uint32_t n_periods, Reader reader, uint64_t busy_ns) {
  const uint64_t before = engine.snapshot(true).balance.in_pkts;
  auto due = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < n_periods; ++i) {
    due += kPeriod;
    std::this_thread::sleep_until(due);
    if (reader == Reader::kReading) (void)engine.snapshot(true);
    if (reader == Reader::kBusy) spend(busy_ns);
  }
  return engine.snapshot(true).balance.in_pkts - before;
}

std::string fault_in(batchplane::Engine& engine) {
  const batchplane::Balance balance = engine.snapshot(true).balance;
  if (!balance.is_exact()) return "packets do not add up";
  if (balance.dropped_pkts != 0) return std::to_string(balance.dropped_pkts) + " packets were lost";
  return "";
}

// Time that the worker itself says it spent on one reading, in ns.
bench::Interval time_per_reading(batchplane::Engine& engine) {
  std::vector<double> times_ns;
  uint64_t before_ns = engine.snapshot(true).workers.front().stats.control_ns;
  for (uint32_t i = 0; i < kTimedReads; ++i) {
    const uint64_t now_ns = engine.snapshot(true).workers.front().stats.control_ns;
    times_ns.push_back(static_cast<double>(now_ns - before_ns));
    before_ns = now_ns;
  }
  return bench::time_percentile({.name = "", .ns_per_pkt = std::move(times_ns)}, 0.5);
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core == 0 ? 1 : 0);
  bench::Report report("statistics", options);
  batchplane::PipelineSpec spec = bench::l2l3_spec(16, 500, false);
  spec.workers.push_back({"w0", options.core});
  bench::EngineBench l2l3(spec, "statistics");
  batchplane::Engine& engine = l2l3.engine();
  engine.start();
  const uint64_t busy_ns = reader_ns(engine);
  const auto contender = [&](const std::string& name, Reader reader) {
    return bench::Contender{
        .name = name,
        .run = [&engine, reader, busy_ns](uint32_t n) { return watch(engine, n, reader, busy_ns); },
        .verify = [&engine] { return fault_in(engine); }};
  };
  const auto results = bench::run_interleaved(
      {contender("never", Reader::kNone), contender("100 times a second", Reader::kReading),
       contender("never, other core busy", Reader::kBusy)},
      options.trials, options.batches);
  const bench::Interval reading_ns = time_per_reading(engine);
  engine.stop(true);
  const batchplane::Balance end = engine.snapshot(true).balance;
  if (!end.is_exact()) throw std::runtime_error("after reading, packets do not add up");
  const auto lost_pkts = static_cast<double>(end.dropped_pkts);
  report.rows("l2l3(16), statistics read", results);
  const bench::Interval ratio = bench::paired_ratio(results[0], results[1]);
  report.figure("rate while all statistics are read 100 times a second", "of the rate", ratio,
                bench::Target{0.995, false});
  report.figure("time of the worker per reading", "us",
                {reading_ns.median / 1e3, reading_ns.low / 1e3, reading_ns.high / 1e3});
  report.figure("the same, against a core beside it that is as busy without reading", "of the rate",
                bench::paired_ratio(results[2], results[1]));
  report.figure("time of a reading on the reader's own core", "us",
                {static_cast<double>(busy_ns) / 1e3, static_cast<double>(busy_ns) / 1e3,
                 static_cast<double>(busy_ns) / 1e3});
  const double share = 100 * kReadsPerSecond / 1e9;
  report.figure("share of its time that 100 readings a second take", "%",
                {reading_ns.median * share, reading_ns.low * share, reading_ns.high * share},
                bench::Target{0.5});
  report.figure("packets lost meanwhile", "packets", {lost_pkts, lost_pkts, lost_pkts},
                bench::Target{0});
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options =
      bench::parse_options(argc, argv, {.trials = 100, .batches = kPeriods});
  return bench::guarded([&] { return run(options); });
}
