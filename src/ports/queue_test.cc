// SPDX-License-Identifier: BSD-3-Clause
// queue_test.cc - the queue module: order, drops, times, fairness between producers, and apply.
#include <gtest/gtest.h>

#include <thread>

#include "core/module/kind.h"
#include "ports/port_test_util.h"

namespace batchplane::ports {
namespace {

TEST(Queue, KeepsOrderAndTimesAndDropsWhenFull) {
  PortRig rig;
  auto queue = rig.module("queue", {{"size_pkts", 3}});
  rig.ctx->now_ns = 1000;
  std::vector<Packet*> pkts;
  for (uint8_t i = 0; i < 4; ++i) {
    pkts.push_back(rig.make(60, i, 400));
    pkts.back()->meta().path_state = 7;
  }
  EXPECT_EQ(rig.consume(*queue, "queue", pkts), std::vector<std::string>{"queue_full"});
  EXPECT_EQ(queue->held_pkts(), 3U);
  rig.ctx->now_ns = 5000;
  const auto out = rig.poll(*queue, "queue");
  ASSERT_EQ(out.size(), 3U);
  for (uint8_t i = 0; i < 3; ++i) {
    EXPECT_EQ(out[i]->data()[0], i);
    EXPECT_EQ(out[i]->meta().entry_ns, 400U);
    EXPECT_EQ(out[i]->meta().task_entry_delta_ns, 600U);
    EXPECT_EQ(out[i]->meta().path_state, 7);
  }
  EXPECT_EQ(queue->held_pkts(), 0U);
  rig.free(out);
}

TEST(Queue, TellsWhatCameToIt) {
  PortRig rig;
  auto queue = rig.module("queue", {{"size_pkts", 8}});
  std::vector<Packet*> pkts;
  for (int i = 0; i < 11; ++i) pkts.push_back(rig.make(60));
  EXPECT_EQ(rig.consume(*queue, "queue", pkts).size(), 3U);
  EXPECT_EQ(queue->arrival_counts().lost_pkts, 3U);
  EXPECT_EQ(queue->ring_counts().waiting_pkts, 8U);
  EXPECT_EQ(queue->ring_counts().ring_pkts, 8U);
  const auto out = rig.poll(*queue, "queue", 6);
  EXPECT_EQ(queue->ring_counts().waiting_pkts, 2U);
  EXPECT_EQ(queue->ring_counts().fill.max_pkts(), 8U);
  rig.free(out);
  // The queue that replaces it continues the count.
  auto next = rig.module("queue", {{"size_pkts", 16}});
  next->adopt(*queue);
  EXPECT_EQ(next->arrival_counts().lost_pkts, 3U);
  EXPECT_EQ(next->ring_counts().waiting_pkts, 2U);
}

TEST(Queue, TaskEntryTimeSaturates) {
  PortRig rig;
  auto queue = rig.module("queue", {});
  rig.ctx->now_ns = 1ULL << 40;
  rig.consume(*queue, "queue", {rig.make(60, 0, 1)});
  const auto out = rig.poll(*queue, "queue");
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0]->meta().task_entry_delta_ns, 0xffffffffU);
  rig.free(out);
}

TEST(Queue, ProducersTakeTurns) {
  PortRig rig;
  rig.env.n_workers = 2;
  auto queue = rig.module("queue", {{"size_pkts", 8}});
  EXPECT_EQ(queue->max_held_pkts(), 16U);
  for (uint16_t worker = 0; worker < 2; ++worker) {
    rig.ctx->worker_index = worker;
    std::vector<Packet*> pkts;
    for (int i = 0; i < 8; ++i) pkts.push_back(rig.make(60, static_cast<uint8_t>(worker)));
    EXPECT_TRUE(rig.consume(*queue, "queue", pkts).empty());
  }
  std::vector<uint8_t> order;
  for (int i = 0; i < 4; ++i) {
    const auto out = rig.poll(*queue, "queue", 4);
    ASSERT_EQ(out.size(), 4U);
    order.push_back(out[0]->data()[0]);
    rig.free(out);
  }
  EXPECT_EQ(order, (std::vector<uint8_t>{0, 1, 0, 1}));
}

TEST(Queue, BackpressureTellsTheRoomThatIsLeft) {
  PortRig rig;
  EXPECT_FALSE(rig.module("queue", {{"size_pkts", 64}})->wants_backpressure());
  auto queue = rig.module("queue", {{"size_pkts", 64}, {"backpressure", true}});
  EXPECT_TRUE(queue->wants_backpressure());
  EXPECT_EQ(queue->room_pkts(0), 64U);
  std::vector<Packet*> pkts;
  for (int i = 0; i < 40; ++i) pkts.push_back(rig.make(60, 0));
  rig.consume(*queue, "queue", pkts);
  EXPECT_EQ(queue->room_pkts(0), 24U);
  rig.free(rig.poll(*queue, "queue", 32));
  EXPECT_EQ(queue->room_pkts(0), 56U);
  rig.free(rig.poll(*queue, "queue", 32));
  EXPECT_THROW(rig.module("queue", {{"size_pkts", 8}, {"backpressure", true}}), ConfigError);
}

TEST(Queue, CreditBoundsWhatMayWait) {
  PortRig rig;
  auto queue = rig.module("queue", {{"size_pkts", 64}, {"credit_pkts", 10}});
  EXPECT_EQ(queue->room_pkts(0), 10U);
  std::vector<Packet*> pkts;
  for (uint8_t i = 0; i < 14; ++i) pkts.push_back(rig.make(60, i));
  EXPECT_EQ(rig.consume(*queue, "queue", pkts).size(), 4U);
  // A credit below the fill loses nothing, but no further packet is taken.
  queue->set_credit(3);
  EXPECT_EQ(queue->room_pkts(0), 0U);
  EXPECT_EQ(queue->held_pkts(), 10U);
  const auto first = rig.poll(*queue, "queue", 8);
  EXPECT_EQ(queue->room_pkts(0), 1U);
  (void)queue->command("set", Dict{{"credit_pkts", 64}});
  EXPECT_EQ(queue->room_pkts(0), 62U);
  EXPECT_EQ(queue->saved_params().at("credit_pkts").as_int(), 64);
  const auto rest = rig.poll(*queue, "queue", 8);
  ASSERT_EQ(first.size() + rest.size(), 10U);
  for (uint8_t i = 0; i < 2; ++i) EXPECT_EQ(rest[i]->data()[0], 8 + i);
  rig.free(first);
  rig.free(rest);
  // The queue that replaces it continues with the ring, under its own credit.
  auto next = rig.module("queue", {{"size_pkts", 64}, {"credit_pkts", 5}});
  next->adopt(*queue);
  EXPECT_EQ(next->room_pkts(0), 5U);
}

TEST(Queue, TakesBeyondItsCreditWhatThoseHeldBackHavePolledBefore) {
  PortRig rig;
  auto queue =
      rig.module("queue", {{"size_pkts", 64}, {"credit_pkts", 40}, {"backpressure", true}});
  EXPECT_EQ(queue->room_pkts(0), 40U);
  EXPECT_EQ(queue->space_pkts(0), 64U);
  std::vector<Packet*> pkts;
  for (uint8_t i = 0; i < 60; ++i) pkts.push_back(rig.make(60, i));
  EXPECT_EQ(rig.consume(*queue, "queue", pkts).size(), 0U);
  EXPECT_EQ(queue->room_pkts(0), 0U);
  EXPECT_EQ(queue->space_pkts(0), 4U);
  rig.free(rig.poll(*queue, "queue", 32));
  EXPECT_EQ(queue->room_pkts(0), 12U);
}

TEST(Queue, ApplyCarriesOverWhatIsBeyondTheNewCredit) {
  PortRig rig;
  for (const int size : {8, 64}) {  // the same ring, and one of another size
    auto old_queue = rig.module("queue", {{"size_pkts", 8}});
    auto next = rig.module("queue", {{"size_pkts", size}, {"credit_pkts", 2}});
    std::vector<Packet*> pkts;
    for (uint8_t i = 0; i < 5; ++i) pkts.push_back(rig.make(60, i));
    rig.consume(*old_queue, "queue", pkts);
    next->adopt(*old_queue);
    EXPECT_EQ(next->held_pkts(), 5U);
    EXPECT_EQ(next->room_pkts(0), 0U);
    rig.free(rig.poll(*next, "queue"));
    EXPECT_EQ(next->room_pkts(0), 2U);
  }
}

TEST(Queue, CreditsOutOfRangeAreRefused) {
  PortRig rig;
  EXPECT_THROW(rig.module("queue", {{"size_pkts", 64}, {"credit_pkts", 65}}), ConfigError);
  EXPECT_THROW(rig.module("queue", {{"size_pkts", 64}, {"backpressure", true}, {"credit_pkts", 8}}),
               ConfigError);
  auto queue = rig.module("queue", {{"size_pkts", 64}});
  for (const Value& bad : {Value(Dict{{"credit_pkts", 0}}), Value(Dict{{"credit_pkts", -3}}),
                           Value(Dict{{"credit_pkts", 65}}), Value(Dict{{"credit_pkts", "all"}}),
                           Value(Dict{{"size_pkts", 8}}), Value(Dict{}), Value(7)}) {
    EXPECT_THROW((void)queue->command("set", bad), ConfigError);
  }
  EXPECT_EQ(queue->credit_pkts(), 64U);
}

TEST(Queue, ApplyCarriesPacketsOverEvenToAnotherSize) {
  PortRig rig;
  for (const int size : {8, 2, 100}) {
    auto old_queue = rig.module("queue", {{"size_pkts", 8}});
    auto next = rig.module("queue", {{"size_pkts", size}});
    std::vector<Packet*> pkts;
    for (uint8_t i = 0; i < 5; ++i) pkts.push_back(rig.make(60, i));
    rig.consume(*old_queue, "queue", pkts);
    next->adopt(*old_queue);
    EXPECT_EQ(next->held_pkts(), std::min<uint64_t>(5, static_cast<uint64_t>(size)));
    EXPECT_EQ(next->held_pkts() + old_queue->held_pkts(), 5U);
    const auto out = rig.poll(*next, "queue");
    for (uint8_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i]->data()[0], i);
    rig.free(out);
  }
  EXPECT_EQ(rig.pool.available_pkts(), 512U);  // destroyed queues return their packets to the pool
}

TEST(Queue, TwoThreadsLoseNothing) {
  constexpr uint32_t kTotal = 20'000;
  PortRig rig(512);
  auto queue = rig.module("queue", {{"size_pkts", 64}});
  std::atomic<uint64_t> dropped{0};
  std::thread producer([&] {
    auto ctx = std::make_unique<Context>();
    for (uint32_t sent = 0; sent < kTotal;) {
      Packet* pkts[16];
      if (!rig.pool.alloc_bulk(pkts, 16)) {
        std::this_thread::yield();
        continue;
      }
      for (Packet* pkt : pkts) {
        pkt->reset(60);
        pkt->meta() = PacketMeta{};
        std::memcpy(pkt->data(), &sent, 4);
        ++sent;
      }
      find_module_kind("queue")->run(queue.get(), *ctx, pkts, 16);
      for (uint32_t i = 0; i < ctx->n_dropped; ++i) PacketPool::free_bulk(&ctx->dropped[i].pkt, 1);
      dropped += ctx->n_dropped;
      ctx->n_dropped = ctx->n_removed = 0;
    }
  });
  uint64_t received = 0;
  int64_t last = -1;
  bool is_in_order = true;
  while (received + dropped.load() < kTotal) {
    const auto out = rig.poll(*queue, "queue");
    for (Packet* pkt : out) {
      uint32_t number = 0;
      std::memcpy(&number, pkt->data(), 4);
      is_in_order &= static_cast<int64_t>(number) > last;
      last = number;
    }
    received += out.size();
    rig.free(out);
    if (out.empty()) std::this_thread::yield();
  }
  producer.join();
  EXPECT_TRUE(is_in_order);
  EXPECT_EQ(received + dropped.load(), kTotal);
  EXPECT_EQ(queue->held_pkts(), 0U);
}

}  // namespace
}  // namespace batchplane::ports
