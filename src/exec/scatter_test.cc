// SPDX-License-Identifier: BSD-3-Clause
// scatter_test.cc - vector and wide scatter against a plain loop, and gate equality at every size.
#include "exec/scatter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/rng.h"

namespace batchplane::exec {
namespace {

using Queues = std::vector<std::vector<uint64_t*>>;

// Queues that already hold some packets, each with the 8 slots of slack that vector stores may use.
class Targets {
 public:
  Targets(uint32_t n_gates, uint32_t held)
      : slots_(n_gates, std::vector<uint64_t*>(held + kMaxBatchPkts + 8)) {
    for (uint32_t g = 0; g < n_gates; ++g) {
      queues_.push_back(std::make_unique<Queue<uint64_t*>>());
      queues_[g]->pkts = slots_[g].data();
      queues_[g]->size_pkts = queues_[g]->seen_pkts = held;
      pointers_.push_back(queues_[g].get());
    }
  }
  Queue<uint64_t*>* const* data() { return pointers_.data(); }
  [[nodiscard]] Queues contents() const {
    Queues all;
    for (const auto& queue : queues_) all.emplace_back(queue->pkts, queue->pkts + queue->size_pkts);
    return all;
  }

 private:
  std::vector<std::vector<uint64_t*>> slots_;
  std::vector<std::unique_ptr<Queue<uint64_t*>>> queues_;
  std::vector<Queue<uint64_t*>*> pointers_;
};

struct Input {
  std::vector<uint64_t> numbers = std::vector<uint64_t>(kMaxBatchPkts);
  std::vector<uint64_t*> pkts;
  alignas(64) GateIndex gates[kMaxBatchPkts + 32] = {};

  Input() {
    for (uint64_t& number : numbers) pkts.push_back(&number);
  }
  // Runs of equal gates, as in real traffic, or single ones. Entries of an earlier batch remain behind the
  // batch.
  void fill(Rng& rng, uint32_t n_gates) {
    const uint32_t run = rng.below(3) == 0 ? 1 + rng.below(40) : 1;
    GateIndex gate = 0;
    for (uint32_t i = 0; i < std::size(gates); ++i) {
      if (i % run == 0) gate = static_cast<GateIndex>(rng.below(n_gates));
      gates[i] = gate;
    }
  }
};

TEST(Scatter, VectorDoesWhatThePlainLoopDoes) {
  if (__builtin_cpu_supports("avx512f") == 0 || __builtin_cpu_supports("avx512bw") == 0 ||
      __builtin_cpu_supports("avx512vl") == 0) {
    GTEST_SKIP() << "this CPU has no AVX-512";
  }
  Rng rng(5);
  Input input;
  for (uint32_t n = 1; n <= kMaxBatchPkts; ++n) {
    for (uint32_t n_gates = 1; n_gates <= kBitmapGates; n_gates += n_gates < 8 ? 1 : 7) {
      input.fill(rng, n_gates);
      const uint32_t held = rng.below(20);
      Targets plain(n_gates, held);
      Targets vector(n_gates, held);
      const uint64_t wanted = scatter_scalar(input.pkts.data(), input.gates, n, plain.data());
      const uint64_t touched = scatter_avx512(input.pkts.data(), input.gates, n, vector.data());
      ASSERT_EQ(touched, wanted) << n << " packets, " << n_gates << " gates";
      ASSERT_EQ(vector.contents(), plain.contents()) << n << " packets, " << n_gates << " gates";
    }
  }
}

TEST(Scatter, WideListsEachTouchedGateOnceByFirstPacket) {
  Rng rng(6);
  Input input;
  for (uint32_t n = 1; n <= kMaxBatchPkts; n += 3) {
    for (const uint32_t n_gates : {1U, 2U, 64U, 65U, 300U}) {
      input.fill(rng, n_gates);
      const uint32_t held = rng.below(20);
      Targets targets(n_gates, held);
      GateIndex list[kMaxBatchPkts];
      const uint32_t n_touched =
          scatter_wide(input.pkts.data(), input.gates, n, targets.data(), list);
      std::vector<GateIndex> wanted;
      Queues queues(n_gates, std::vector<uint64_t*>(held));
      for (uint32_t i = 0; i < n; ++i) {
        queues[input.gates[i]].push_back(input.pkts[i]);
        if (std::ranges::find(wanted, input.gates[i]) == wanted.end())
          wanted.push_back(input.gates[i]);
      }
      ASSERT_EQ(std::vector<GateIndex>(list, list + n_touched), wanted);
      ASSERT_EQ(targets.contents(), queues);
    }
  }
}

TEST(Scatter, GatesAreEqualOnlyWhenAllOfTheBatchAre) {
  alignas(64) GateIndex gates[kMaxBatchPkts + 32];
  for (const GateIndex gate : {GateIndex{0}, GateIndex{7}, GateIndex{0xfffe}}) {
    for (uint32_t n = 1; n <= kMaxBatchPkts; ++n) {
      std::fill(std::begin(gates), std::end(gates),
                static_cast<GateIndex>(gate ^ 1));  // different gates behind the batch
      std::fill(gates, gates + n, gate);
      ASSERT_TRUE(all_gates_equal(gates, n)) << n;
      for (uint32_t odd = 0; odd < n && n > 1; ++odd) {
        gates[odd] = static_cast<GateIndex>(gate ^ 0x100);
        ASSERT_FALSE(all_gates_equal(gates, n)) << odd << " of " << n;
        gates[odd] = gate;
      }
    }
  }
}

}  // namespace
}  // namespace batchplane::exec
