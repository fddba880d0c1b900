// SPDX-License-Identifier: BSD-3-Clause
// scatter.cc - the ways to deal a batch out to the queues behind its gates, by number of gates;
// shows from where on the scalar one is faster, which exec::kVectorGates states.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "common/environment.h"
#include "common/report.h"
#include "exec/scatter.h"

namespace {

using batchplane::exec::GateIndex;
using Handle = void*;
using Queue = batchplane::exec::Queue<Handle>;
namespace exec = batchplane::exec;

constexpr uint32_t kMemoryMb = 64;
constexpr uint32_t kMaxGates = 256;
constexpr uint32_t kPatterns = 64;  // more than the branch predictor learns by heart
constexpr uint32_t kSlack = 64;

// Queues that are emptied after each batch, as the branches behind them would.
class Lanes {
 public:
  Lanes(uint32_t n_gates, uint32_t batch_pkts) : n_gates_(n_gates), batch_pkts_(batch_pkts) {
    batchplane::Rng rng(n_gates * 1000 + batch_pkts);
    slots_.resize(size_t{kMaxGates} * (exec::kMaxBatchPkts + kSlack));
    queues_ = std::make_unique<Queue[]>(n_gates);
    for (uint32_t g = 0; g < n_gates; ++g) {
      queues_[g].pkts = &slots_[size_t{g} * (exec::kMaxBatchPkts + kSlack)];
      targets_.push_back(&queues_[g]);
    }
    gates_.resize(size_t{kPatterns} * kRow);
    for (GateIndex& gate : gates_) gate = static_cast<GateIndex>(rng.below(n_gates));
    for (uint32_t i = 0; i < exec::kMaxBatchPkts; ++i) pkts_.push_back(&slots_[i]);
  }

  [[nodiscard]] const GateIndex* pattern(uint32_t i) const {
    return &gates_[size_t{i % kPatterns} * kRow];
  }
  [[nodiscard]] Handle const* pkts() const { return pkts_.data(); }
  [[nodiscard]] Queue* const* targets() const { return targets_.data(); }
  [[nodiscard]] uint32_t batch_pkts() const { return batch_pkts_; }
  [[nodiscard]] uint32_t n_gates() const { return n_gates_; }

  void empty(uint64_t touched) {
    for (; touched != 0; touched &= touched - 1) {
      queues_[static_cast<uint32_t>(std::countr_zero(touched))].size_pkts = 0;
    }
  }
  void empty(const GateIndex* list, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) queues_[list[i]].size_pkts = 0;
  }

  // Each packet once, in order, in the queue of its gate.
  [[nodiscard]] bool holds(const GateIndex* gates) const {
    std::vector<uint32_t> seen(n_gates_, 0);
    for (uint32_t i = 0; i < batch_pkts_; ++i) {
      const Queue& queue = queues_[gates[i]];
      const uint32_t at = seen[gates[i]]++;
      if (at >= queue.size_pkts || queue.pkts[at] != pkts_[i]) return false;
    }
    for (uint32_t g = 0; g < n_gates_; ++g) {
      if (queues_[g].size_pkts != seen[g]) return false;
    }
    return true;
  }

 private:
  static constexpr uint32_t kRow = exec::kMaxBatchPkts + 32;
  uint32_t n_gates_;
  uint32_t batch_pkts_;
  std::vector<Handle> slots_;
  std::unique_ptr<Queue[]> queues_;
  std::vector<Queue*> targets_;
  std::vector<GateIndex> gates_;
  std::vector<Handle> pkts_;
};

enum class Way : uint8_t { kScalar, kVector, kWide };

template <Way kWay>
void scatter_once(Lanes& lanes, const GateIndex* gates, bool is_emptied) {
  const uint32_t n = lanes.batch_pkts();
  if constexpr (kWay == Way::kWide) {
    GateIndex list[exec::kMaxBatchPkts];
    const uint32_t n_touched = exec::scatter_wide(lanes.pkts(), gates, n, lanes.targets(), list);
    if (is_emptied) lanes.empty(list, n_touched);
  } else {
    uint64_t touched = 0;
    if constexpr (kWay == Way::kScalar) {
      touched = exec::scatter_scalar(lanes.pkts(), gates, n, lanes.targets());
    } else {
      touched = exec::scatter_avx512(lanes.pkts(), gates, n, lanes.targets());
    }
    if (is_emptied) lanes.empty(touched);
  }
}

template <Way kWay>
bench::Contender contender(const std::string& name, Lanes& lanes) {
  return {.name = name,
          .run =
              [&lanes](uint32_t n) {
                for (uint32_t b = 0; b < n; ++b) {
                  // As the engine does, for the case that all go one way.
                  const GateIndex* gates = lanes.pattern(b);
                  if (exec::all_gates_equal(gates, lanes.batch_pkts())) continue;
                  scatter_once<kWay>(lanes, gates, true);
                }
                return uint64_t{n} * lanes.batch_pkts();
              },
          .verify =
              [&lanes] {
                scatter_once<kWay>(lanes, lanes.pattern(0), false);
                const bool is_right = lanes.holds(lanes.pattern(0));
                for (uint32_t g = 0; g < lanes.n_gates(); ++g) lanes.targets()[g]->size_pkts = 0;
                return is_right ? std::string() : std::string("packets are not where they belong");
              }};
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("scatter", options);
  const bool has_vector = __builtin_cpu_supports("avx512f") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0;
  uint32_t knee = 0;
  bool is_ahead = has_vector;
  for (const uint32_t batch_pkts : {32U, 256U}) {
    for (const uint32_t n_gates : {2U, 3U, 4U, 5U, 6U, 8U, 16U, 32U, 64U, 256U}) {
      Lanes lanes(n_gates, batch_pkts);
      std::vector<bench::Contender> contenders;
      const bool fits_bitmap = n_gates <= exec::kBitmapGates;
      if (fits_bitmap) contenders.push_back(contender<Way::kScalar>("scalar", lanes));
      if (fits_bitmap && has_vector) contenders.push_back(contender<Way::kVector>("avx512", lanes));
      contenders.push_back(contender<Way::kWide>("wide", lanes));
      const auto results = bench::run_interleaved(contenders, options.trials, options.batches);
      report.rows(std::to_string(n_gates) + " gates, batch " + std::to_string(batch_pkts), results);
      if (batch_pkts != exec::kDefaultBatchPkts || !fits_bitmap || !has_vector) continue;
      is_ahead = is_ahead && results[1].percentile(0.1) < results[0].percentile(0.1);
      if (is_ahead) knee = n_gates;
    }
  }
  report.figure("most gates at which avx512 is ahead of scalar, batch 32", "gates",
                {double(knee), double(knee), double(knee)});
  report.note("exec::kVectorGates is " + std::to_string(exec::kVectorGates) +
              (has_vector ? "" : "; this CPU has no AVX-512, so that nothing was compared"));
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 400, .batches = 640});
  return bench::guarded([&] { return run(options); });
}
