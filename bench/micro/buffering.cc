// SPDX-License-Identifier: BSD-3-Clause
// buffering.cc - what fractional buffers take: bypassed ones, held packets, and the gain against
// the cost law.
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "common/engine_bench.h"
#include "common/environment.h"
#include "common/report.h"

namespace {

using batchplane::Dict;
using batchplane::List;
using bench::EngineBench;
using bench::Interval;
using bench::Result;

constexpr uint32_t kMemoryMb = 1536;
constexpr uint32_t kWays = 16;
constexpr uint32_t kTriggerPkts = 32;
constexpr uint32_t kPairs = 4;
constexpr uint32_t kResamples = 1000;
constexpr double kCostCycles = 1000;

bench::Contender contender_of(const std::string& name, EngineBench& engine) {
  return {.name = name,
          .run = [&engine](uint32_t n) { return engine.run(n); },
          .verify = [&engine] { return engine.verify(); }};
}

// source -> split -> `ways` branches of one `kind` with the trigger given -> a sink each.
batchplane::PipelineSpec branches_of(uint32_t ways, const std::string& kind, const Dict& params,
                                     const std::string& mode, uint32_t trigger_pkts) {
  bench::SpecBuilder b;
  b.spec.name = "branches";
  // Only the triggers are to release packets.
  b.spec.engine.is_idle_hold = true;
  b.spec.engine.stranding_limit_ns = 60'000'000'000;
  b.module("in", "source", {{"flows", List{Dict{{"count", 1}}}}});
  b.module("split", "split", {{"mode", mode}, {"gates", static_cast<int64_t>(ways)}});
  b.edge("in", "split");
  for (uint32_t i = 0; i < ways; ++i) {
    const std::string n = std::to_string(i);
    b.module("work_" + n, kind, params, trigger_pkts).module("out_" + n, "sink");
    b.edge("split", "work_" + n, i).edge("work_" + n, "out_" + n);
  }
  return b.spec;
}

batchplane::PipelineSpec straight(uint32_t trigger_pkts) {
  bench::SpecBuilder b;
  b.spec.name = "straight";
  b.module("in", "source", {{"flows", List{Dict{{"count", 1}}}}});
  b.module("work", "null", {}, trigger_pkts).module("out", "sink");
  b.edge("in", "work").edge("work", "out");
  return b.spec;
}

// Holding packets leaves the pool in another order, which is worth some percent by itself: all
// engines get a pool in random order.
void shuffle_pool(batchplane::PacketPool& pool) {
  std::vector<batchplane::Packet*> pkts;
  for (batchplane::Packet* pkt = nullptr; pool.alloc_bulk(&pkt, 1);) pkts.push_back(pkt);
  batchplane::Rng rng(1);
  for (uint32_t i = static_cast<uint32_t>(pkts.size()); i > 1; --i) {
    std::swap(pkts[i - 1], pkts[rng.below(i)]);
  }
  batchplane::PacketPool::free_bulk(pkts.data(), static_cast<uint32_t>(pkts.size()));
}

// Buffers once in use and now bypassed, against buffers that never were: several engines of each
// kind, since no two lie in memory alike. The spread among the never-used ones shows what is noise.
void measure_bypassed(bench::Report& report, const bench::Options& options) {
  std::vector<std::unique_ptr<EngineBench>> engines;
  std::vector<bench::Contender> contenders;
  for (uint32_t i = 0; i < 2 * kPairs; ++i) {
    const bool was_used = i % 2 == 1;
    engines.push_back(std::make_unique<EngineBench>(bench::l2l3_spec(kWays, 500, false),
                                                    "bypassed_" + std::to_string(i)));
    EngineBench& engine = *engines.back();
    if (was_used) {
      std::vector<batchplane::Engine::TriggerEdit> set;
      std::vector<batchplane::Engine::TriggerEdit> clear;
      for (const auto& module : bench::l2l3_spec(kWays, 500, false).modules) {
        if (module.kind == "source") continue;
        set.push_back({module.name, kTriggerPkts});
        clear.push_back({module.name, 0});
      }
      engine.engine().set_buffers(set, {});
      (void)engine.run(1000);
      engine.engine().set_buffers(clear, {});
    }
    shuffle_pool(*engine.engine().pool());
    contenders.push_back(contender_of(was_used ? "cleared" : "never", engine));
  }
  const auto results = bench::run_interleaved(contenders, options.trials, options.batches);
  // Each trial's mean over the engines of a kind, so that one lucky layout does not decide.
  const auto ratio_of = [&](const std::vector<uint32_t>& trials, uint32_t offset, uint32_t step) {
    std::vector<double> ratios;
    for (const uint32_t t : trials) {
      double upper = 0;
      double lower = 0;
      for (uint32_t i = 0; i < results.size(); i += step) {
        upper += results[i + offset].ns_per_pkt[t];
        lower += results[i].ns_per_pkt[t];
      }
      ratios.push_back(upper / lower);
    }
    return bench::median_of(std::move(ratios));
  };
  const auto n_trials = static_cast<uint32_t>(results.front().ns_per_pkt.size());
  const auto figures =
      bench::bootstrap(n_trials, kResamples, [&](const std::vector<uint32_t>& trials) {
        return std::vector<double>{ratio_of(trials, 1, 2), ratio_of(trials, 2, 4)};
      });
  report.figure("l2l3(16), buffers set and cleared / never set", "", figures[0],
                bench::Target{1.01});
  report.figure("l2l3(16), never set / never set (what is noise)", "", figures[1]);
}

// 10th percentiles of a and b, and b's less a's.
Interval difference_of(const Result& b, const Result& a) {
  const auto n_trials = static_cast<uint32_t>(a.ns_per_pkt.size());
  return bench::bootstrap(n_trials, kResamples, [&](const std::vector<uint32_t>& trials) {
    std::vector<double> with;
    std::vector<double> without;
    for (const uint32_t t : trials) {
      with.push_back(b.ns_per_pkt[t]);
      without.push_back(a.ns_per_pkt[t]);
    }
    return std::vector<double>{bench::percentile(std::move(with), 0.1) -
                               bench::percentile(std::move(without), 0.1)};
  })[0];
}

void measure_held(bench::Report& report, const bench::Options& options) {
  EngineBench through(straight(0), "straight_0");
  EngineBench queued(straight(kTriggerPkts), "straight_32");
  EngineBench split(branches_of(kWays, "null", {}, "round_robin", 0), "held_0");
  EngineBench held(branches_of(kWays, "null", {}, "round_robin", kTriggerPkts), "held_32");
  const auto results = bench::run_interleaved(
      {contender_of("straight, trigger 0", through), contender_of("straight, trigger 32", queued),
       contender_of("split 16, trigger 0", split), contender_of("split 16, trigger 32", held)},
      options.trials, options.batches);
  report.rows("holding", results);
  const Interval straight_ns = difference_of(results[1], results[0]);
  report.figure("buffer filled and fired at once, per packet", "ns", straight_ns,
                bench::Target{0.7});
  report.figure("16-way split: trigger 32 less trigger 0, per packet held", "ns",
                difference_of(results[3], results[2]), bench::Target{0.7});
}

// The 10th percentiles of a, b, c and d give a / (b + c - d).
Interval share_of(const Result& a, const Result& b, const Result& c, const Result& d) {
  const auto n_trials = static_cast<uint32_t>(a.ns_per_pkt.size());
  return bench::bootstrap(n_trials, kResamples, [&](const std::vector<uint32_t>& trials) {
    const auto p10 = [&](const Result& result) {
      std::vector<double> times;
      for (const uint32_t t : trials) times.push_back(result.ns_per_pkt[t]);
      return bench::percentile(std::move(times), 0.1);
    };
    return std::vector<double>{(p10(b) + p10(c) - p10(d)) / p10(a)};
  })[0];
}

// What the law predicts is measured by itself: the same modules with whole batches of 32, in one
// branch and without a buffer. The second prediction takes the engine's part from branches that
// hold their packets too but do nothing, and adds the cost module's.
void measure_gain(bench::Report& report, const bench::Options& options) {
  const Dict cost{{"cost_per_batch_cycles", kCostCycles}};
  EngineBench law(branches_of(1, "cost", cost, "random", 0), "law");
  EngineBench held(branches_of(kWays, "cost", cost, "random", kTriggerPkts), "gain_32");
  EngineBench split(branches_of(kWays, "cost", cost, "random", 0), "gain_0");
  EngineBench one_null(branches_of(1, "null", {}, "random", 0), "one_null");
  EngineBench held_nulls(branches_of(kWays, "null", {}, "random", kTriggerPkts), "held_nulls");
  const auto results = bench::run_interleaved(
      {contender_of("law: one branch of 32", law), contender_of("16 branches, trigger 32", held),
       contender_of("16 branches, trigger 0", split), contender_of("one null", one_null),
       contender_of("16 nulls, trigger 32", held_nulls)},
      options.trials, options.batches / 4 + 1);
  report.rows("cost modules", results);
  report.figure("1000 cycles per batch, 16-way: share of the law's rate", "",
                bench::paired_ratio(results[0], results[1]), bench::Target{0.95, false});
  report.figure("the same, holding counted as a part of its own", "",
                share_of(results[1], results[4], results[0], results[3]));
  report.figure("the same: rate at trigger 32 / at trigger 0", "",
                bench::paired_ratio(results[2], results[1]));
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("buffering", options);
  if (report.wants("bypassed")) measure_bypassed(report, options);
  if (report.wants("held")) measure_held(report, options);
  if (report.wants("gain")) measure_gain(report, options);
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 600, .batches = 400});
  return bench::guarded([&] { return run(options); });
}
