// SPDX-License-Identifier: BSD-3-Clause
// oracle_test.cc - WF2Q+ and QFQ against their papers' definitions: no heaps, no bitmaps, every
// choice by looking at all flows.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>

#include "egress/discipline/discipline_test_util.h"

namespace batchplane::egress {
namespace oracle_test {

// Virtual time as a signed number that never wraps in a test.
using Time = __int128;

struct SlowFlow {
  TestFlow given;
  Time inverse_weight = 0;
  Time start = 0;
  Time finish = 0;
  std::deque<uint32_t> lens;
};

class SlowClock {
 public:
  explicit SlowClock(const std::vector<TestFlow>& flows) {
    uint64_t sum = 0;
    for (const TestFlow& flow : flows) {
      flows_.push_back({flow, static_cast<Time>(inverse_of_weight(flow.weight))});
      sum += flow.weight;
    }
    inverse_sum_ = static_cast<Time>(inverse_of_weight(sum));
  }

 protected:
  void finish_of_head(SlowFlow& flow) const {
    flow.finish = flow.start + flow.lens.front() * flow.inverse_weight;
  }
  // Returns the length.
  uint32_t serve(SlowFlow& flow) {
    const uint32_t len = flow.lens.front();
    flow.lens.pop_front();
    now_ += len * inverse_sum_;
    flow.start = flow.finish;
    if (!flow.lens.empty()) finish_of_head(flow);
    return len;
  }
  std::vector<SlowFlow> flows_;
  Time inverse_sum_ = 0;
  Time now_ = 0;
};

class SlowWf2qPlus : SlowClock {
 public:
  using SlowClock::SlowClock;
  void enqueue(uint32_t at, uint32_t len) {
    SlowFlow& flow = flows_[at];
    flow.lens.push_back(len);
    if (flow.lens.size() != 1) return;
    flow.start = std::max(now_, flow.finish);
    finish_of_head(flow);
  }
  // Finish time of the next packet: several flows may have the same one.
  std::optional<Time> next_finish() {
    std::optional<Time> earliest_start;
    for (const SlowFlow& flow : flows_) {
      if (flow.lens.empty()) continue;
      earliest_start = std::min(earliest_start.value_or(flow.start), flow.start);
    }
    if (!earliest_start) return {};
    now_ = std::max(now_, *earliest_start);
    std::optional<Time> next;
    for (const SlowFlow& flow : flows_) {
      if (!flow.lens.empty() && flow.start <= now_)
        next = std::min(next.value_or(flow.finish), flow.finish);
    }
    return next;
  }
  bool may_serve(uint32_t at, Time finish) const {
    const SlowFlow& flow = flows_[at];
    return !flow.lens.empty() && flow.start <= now_ && flow.finish == finish;
  }
  void serve_flow(uint32_t at) { serve(flows_[at]); }
};

// Groups, slots and sets by their definitions.
class SlowQfq : SlowClock {
 public:
  explicit SlowQfq(const std::vector<TestFlow>& flows) : SlowClock(flows) {
    for (const SlowFlow& flow : flows_) {
      const Time longest = std::max(flow.given.lmax_bytes, kMinLmaxBytes) * flow.inverse_weight;
      uint32_t shift = QfqGroups<FlowSet<QfqTimes>>::kMinShift;
      while ((Time{1} << shift) < longest) ++shift;
      shift_.push_back(shift);
    }
  }
  void enqueue(uint32_t at, uint32_t len) {
    SlowFlow& flow = flows_[at];
    flow.lens.push_back(len);
    if (flow.lens.size() != 1) return;
    flow.start = start_of_idle(at);
    finish_of_head(flow);
    if (groups_.empty()) now_ = std::max(now_, rounded(at));
    groups_[shift_[at]][rounded(at)].push_back(at);
  }
  std::optional<uint32_t> dequeue() {
    if (groups_.empty()) return {};
    std::vector<uint32_t> ready = ready_groups();
    if (ready.empty()) {
      now_ = first_start(groups_.begin()->second);
      for (const auto& [shift, slots] : groups_) now_ = std::min(now_, first_start(slots));
      ready = ready_groups();
    }
    uint32_t chosen = ready.front();
    for (const uint32_t shift : ready) {
      // Of groups with equal finish times, the one of shorter packets.
      if (finish_of(shift) <= finish_of(chosen)) chosen = shift;
    }
    return serve_group(chosen);
  }

 private:
  using Slots = std::map<Time, std::deque<uint32_t>>;  // by rounded start

  Time rounded(uint32_t at) const { return flows_[at].start >> shift_[at] << shift_[at]; }
  static Time first_start(const Slots& slots) { return slots.begin()->first; }
  Time finish_of(uint32_t shift) const {
    return first_start(groups_.at(shift)) + (Time{2} << shift);
  }
  // Started groups that no started and ready group of longer packets precedes in finish time.
  std::vector<uint32_t> ready_groups() const {
    std::vector<uint32_t> ready;
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
      if (first_start(group->second) > now_) continue;
      bool is_blocked = false;
      for (const uint32_t above : ready) is_blocked |= finish_of(above) < finish_of(group->first);
      if (!is_blocked) ready.push_back(group->first);
    }
    return ready;
  }
  Time start_of_idle(uint32_t at) const {
    const Time finish = flows_[at].finish;
    const uint32_t shift = shift_[at];
    if (finish <= now_) return now_;
    const Time limit = (now_ >> shift << shift) + (Time{1} << shift);
    if ((finish >> shift << shift) <= limit) return finish;
    for (const uint32_t above : sorted(ready_groups())) {
      if (above > shift) return std::min(limit, finish_of(above));
    }
    return limit;
  }
  static std::vector<uint32_t> sorted(std::vector<uint32_t> all) {
    std::sort(all.begin(), all.end());
    return all;
  }
  uint32_t serve_group(uint32_t shift) {
    Slots& slots = groups_.at(shift);
    const Time slot = first_start(slots);
    std::deque<uint32_t>& waiting = slots.begin()->second;
    const uint32_t at = waiting.front();
    serve(flows_[at]);
    const bool stays = !flows_[at].lens.empty() && rounded(at) == slot;
    if (!stays) {
      waiting.pop_front();
      if (waiting.empty()) slots.erase(slot);
      if (!flows_[at].lens.empty()) slots[rounded(at)].push_back(at);
      if (slots.empty()) groups_.erase(shift);
    }
    return at;
  }

  std::vector<uint32_t> shift_;
  std::map<uint32_t, Slots> groups_;
};

std::vector<TestFlow> random_flows(Rng& rng) {
  std::vector<TestFlow> flows(2 + rng.below(40));
  for (TestFlow& flow : flows) {
    flow.weight = 1 + rng.below(rng.below(3) == 0 ? 5000 : 20);
    flow.lmax_bytes = 64 + rng.below(rng.below(3) == 0 ? 9000 : 1500);
  }
  return flows;
}

// Calls `put` and `take` in random order: long queues at times, idle flows at others.
template <class Put, class Take>
void play(Rng& rng, const std::vector<TestFlow>& flows, const Put& put, const Take& take) {
  uint32_t load = 50;
  for (uint32_t k = 0; k < 20'000; ++k) {
    if (k % 300 == 0) load = 35 + rng.below(30);
    const uint32_t flow = rng.below(static_cast<uint32_t>(flows.size()));
    if (rng.below(100) < load) {
      put(flow, 1 + rng.below(flows[flow].lmax_bytes));
    } else {
      take();
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Qfq, ServesWhomItsDefinitionNames) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    const std::vector<TestFlow> flows = random_flows(rng);
    Qfq fast = make_discipline<Qfq>(flows, 40'000);
    SlowQfq slow(flows);
    const auto put = [&](uint32_t flow, uint32_t len) {
      fast.enqueue(Descriptor::of(1, len, flow, 0));
      slow.enqueue(flow, len);
    };
    uint32_t n = 0;
    play(rng, flows, put, [&] {
      Descriptor pkt;
      const std::optional<uint32_t> wanted = slow.dequeue();
      ASSERT_EQ(fast.dequeue(pkt), wanted.has_value());
      ASSERT_EQ(pkt.flow, wanted.value_or(pkt.flow)) << "seed " << seed << ", packet " << n;
      ++n;
    });
  }
}

TEST(Wf2qPlus, ServesTheEarliestFinishOfThoseThatHaveBegun) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    const std::vector<TestFlow> flows = random_flows(rng);
    Wf2qPlus fast = make_discipline<Wf2qPlus>(flows, 40'000);
    SlowWf2qPlus slow(flows);
    const auto put = [&](uint32_t flow, uint32_t len) {
      fast.enqueue(Descriptor::of(1, len, flow, 0));
      slow.enqueue(flow, len);
    };
    play(rng, flows, put, [&] {
      Descriptor pkt;
      const std::optional<Time> wanted = slow.next_finish();
      ASSERT_EQ(fast.dequeue(pkt), wanted.has_value());
      if (!wanted) return;
      ASSERT_TRUE(slow.may_serve(pkt.flow, *wanted)) << "seed " << seed;
      slow.serve_flow(pkt.flow);
    });
  }
}

}  // namespace oracle_test
}  // namespace batchplane::egress
