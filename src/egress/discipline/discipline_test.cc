// SPDX-License-Identifier: BSD-3-Clause
// discipline_test.cc - requirements on every packet scheduler: keeps each packet, and each flow's
// order.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "egress/discipline/discipline_test_util.h"

namespace batchplane::egress {
namespace discipline_test {

template <class D>
class EveryDiscipline : public testing::Test {};
using All = testing::Types<Fifo, Prio, Drr, Wf2qPlus, Qfq, QfqPlus>;
TYPED_TEST_SUITE(EveryDiscipline, All);

// The model of any scheduler, without an order between flows: a queue of packets for each flow.
class QueuesByHand {
 public:
  explicit QueuesByHand(uint32_t flows) : params_(flows), queues_(flows) {}
  Enqueued enqueue(uint64_t handle, uint32_t flow, uint32_t len) {
    if (flow >= params_.size() || params_[flow].weight == 0) return Enqueued::kNoFlow;
    if (len > params_[flow].lmax_bytes) return Enqueued::kTooLong;
    if (queues_[flow].size() >= params_[flow].limit_pkts) return Enqueued::kFull;
    queues_[flow].push_back(handle);
    ++total_;
    return Enqueued::kYes;
  }
  uint64_t take(uint32_t flow) {
    const uint64_t handle = queues_[flow].front();
    queues_[flow].pop_front();
    --total_;
    return handle;
  }
  std::vector<FlowParams> params_;
  std::vector<std::deque<uint64_t>> queues_;
  uint32_t total_ = 0;
};

constexpr uint32_t kFlows = 40;
// Room for all that the flows may hold together; for less see tree/shared_limit_test.cc.
constexpr uint32_t kRoom = 4000;

template <class D>
struct Edits {
  D discipline{{kFlows, kRoom}};
  QueuesByHand model{kFlows};
  Rng rng;
  uint64_t next_handle = 1;

  explicit Edits(uint64_t seed) : rng(seed) {
    for (FlowParams& params : model.params_) params.weight = 0;
  }
  void configure(uint32_t flow) {
    const FlowParams params{.weight = 1U << rng.below(17) >> rng.below(3) | 1U,
                            .lmax_bytes = 1 + static_cast<uint32_t>(rng.below(9000)),
                            .limit_pkts = 1 + static_cast<uint32_t>(rng.below(60))};
    ASSERT_EQ(discipline.configure(flow, params),
              params.weight > kMaxWeight ? Configured::kBadWeight : Configured::kYes);
    if (params.weight <= kMaxWeight) model.params_[flow] = params;
  }
  void enqueue() {
    const auto flow = static_cast<uint32_t>(rng.below(kFlows + 2));
    const uint32_t len = 1 + static_cast<uint32_t>(rng.below(rng.below(3) == 0 ? 9000 : 200));
    const uint64_t handle = next_handle++;
    discipline.prefetch(flow);
    const Enqueued got = discipline.enqueue(Descriptor::of(handle, len, flow, 0));
    ASSERT_EQ(got, model.enqueue(handle, flow, len));
  }
  void dequeue() {
    Descriptor pkt;
    const bool has = discipline.dequeue(pkt);
    ASSERT_EQ(has, model.total_ != 0);
    if (!has) return;
    ASSERT_LT(pkt.flow, kFlows);
    ASSERT_FALSE(model.queues_[pkt.flow].empty());
    ASSERT_EQ(pkt.handle(), model.take(pkt.flow));
  }
  void remove(uint32_t flow) {
    discipline.remove(flow, [&](const Descriptor& pkt) {
      ASSERT_EQ(pkt.flow, flow);
      ASSERT_FALSE(model.queues_[flow].empty());
      ASSERT_EQ(pkt.handle(), model.take(flow));
    });
    ASSERT_TRUE(model.queues_[flow].empty());
    model.params_[flow].weight = 0;
  }
  void step() {
    const auto flow = static_cast<uint32_t>(rng.below(kFlows));
    switch (rng.below(40)) {
      case 0:
        remove(flow);
        break;
      case 1:
      case 2:
        configure(flow);
        break;
      default:
        rng.below(100) < load ? enqueue() : dequeue();
    }
    ASSERT_EQ(discipline.backlog_pkts(), model.total_);
    ASSERT_EQ(discipline.backlog_pkts(flow), model.queues_[flow].size());
  }
  uint64_t load = 50;  // percent of operations that are neither configure nor remove
};

// Weights, lengths and limits change, and flows are removed, while they are backlogged and in
// service.
TYPED_TEST(EveryDiscipline, KeepsEveryPacketAndTheOrderOfEachFlowUnderEdits) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Edits<TypeParam> edits(seed);
    for (uint32_t k = 0; k < 20'000; ++k) {
      if (k % 500 == 0) edits.load = 30 + edits.rng.below(40);
      edits.step();
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << k;
    }
    while (edits.model.total_ != 0) edits.dequeue();
    Descriptor pkt;
    EXPECT_FALSE(edits.discipline.dequeue(pkt));
  }
}

TYPED_TEST(EveryDiscipline, RefusesParametersThatItCannotKeep) {
  TypeParam discipline({4, 4});
  EXPECT_EQ(discipline.configure(4, {}), Configured::kBadFlow);
  EXPECT_EQ(discipline.configure(0, {.weight = 0}), Configured::kBadWeight);
  EXPECT_EQ(discipline.configure(0, {.weight = kMaxWeight + 1}), Configured::kBadWeight);
  EXPECT_EQ(discipline.configure(0, {.lmax_bytes = 0}), Configured::kBadLmax);
  EXPECT_EQ(discipline.configure(0, {.lmax_bytes = kMaxPktBytes + 1}), Configured::kBadLmax);
  EXPECT_EQ(discipline.configure(0, {.weight = kMaxWeight, .lmax_bytes = kMaxPktBytes}),
            Configured::kYes);
}

TYPED_TEST(EveryDiscipline, TellsLongFullAndUnknownApart) {
  TypeParam discipline({4, 2});
  ASSERT_EQ(discipline.configure(1, {.lmax_bytes = 100}), Configured::kYes);
  EXPECT_EQ(discipline.enqueue(Descriptor::of(1, 101, 1, 0)), Enqueued::kTooLong);
  EXPECT_EQ(discipline.enqueue(Descriptor::of(1, 50, 2, 0)), Enqueued::kNoFlow);
  EXPECT_EQ(discipline.enqueue(Descriptor::of(1, 50, 99, 0)), Enqueued::kNoFlow);
  EXPECT_EQ(discipline.enqueue(Descriptor::of(1, 100, 1, 0)), Enqueued::kYes);
  EXPECT_EQ(discipline.enqueue(Descriptor::of(2, 100, 1, 0)), Enqueued::kYes);
  EXPECT_EQ(discipline.enqueue(Descriptor::of(3, 100, 1, 0)), Enqueued::kFull);
}

TEST(Descriptor, CarriesAPointerALengthAndATime) {
  const uint64_t pointer = 0x7fff'1234'5678;
  const Descriptor pkt = Descriptor::of(pointer, 65'535, 77, 1'000'000'000'000);
  EXPECT_EQ(pkt.handle(), pointer);
  EXPECT_EQ(pkt.len_bytes(), 65'535U);
  EXPECT_EQ(pkt.waited_ns(1'000'000'000'000 + 3'200), 3'200U);
  // The ticks wrap between the two.
  const uint64_t late_ns = (1ULL << (32 + kTickShift)) - 16;
  EXPECT_EQ(Descriptor::of(1, 64, 0, late_ns).waited_ns(late_ns + 160), 160U);
  EXPECT_FALSE(pkt.has_departure());
  const Descriptor departing = Descriptor::departing(pointer, 65'535, 77, 1000);
  EXPECT_TRUE(departing.has_departure());
  EXPECT_EQ(departing.handle(), pointer);
  EXPECT_EQ(departing.len_bytes(), 65'535U);
  EXPECT_EQ(departing.entry_ns(15'000), 16'000U);
}

TEST(WeightSum, MayNotOverflow) {
  constexpr uint32_t kMany = kMaxWeightSum / kMaxWeight + 1;
  Qfq discipline({kMany, 1});
  for (uint32_t f = 0; f + 1 < kMany; ++f) {
    ASSERT_EQ(discipline.configure(f, {.weight = kMaxWeight}), Configured::kYes);
  }
  EXPECT_EQ(discipline.configure(kMany - 1, {.weight = 1}), Configured::kWeightSum);
  ASSERT_EQ(discipline.configure(0, {.weight = kMaxWeight - 1}), Configured::kYes);
  EXPECT_EQ(discipline.configure(kMany - 1, {.weight = 1}), Configured::kYes);
}

TEST(Prio, ServesTheHighestLevelFirst) {
  Prio prio = make_discipline<Prio>({{.weight = 1}, {.weight = 64}, {.weight = 30}}, 9);
  for (uint32_t k = 0; k < 9; ++k) prio.enqueue(Descriptor::of(1, 100, k % 3, 0));
  std::vector<uint32_t> order;
  for (Descriptor pkt; prio.dequeue(pkt);) order.push_back(pkt.flow);
  EXPECT_EQ(order, (std::vector<uint32_t>{1, 1, 1, 2, 2, 2, 0, 0, 0}));
}

}  // namespace discipline_test
}  // namespace batchplane::egress
