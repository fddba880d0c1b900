// SPDX-License-Identifier: BSD-3-Clause
// ring_port_test.cc - ring and null ports, port_in and port_out around them.
#include "ports/ring_port.h"

#include <gtest/gtest.h>

#include <cstring>

#include "ports/port_test_util.h"

namespace batchplane::ports {
namespace {

BurstSlot slot_of(PortRig& rig, uint32_t len_bytes, uint8_t tag, uint64_t entry_ns) {
  return BurstSlot::make(rig.make(len_bytes, tag), len_bytes, entry_ns);
}

TEST(RingPort, ReceivedPacketsHaveFreshMetadata) {
  PortRig rig;
  RingPort port(4, false);
  BurstSlot slots[6];
  for (uint8_t i = 0; i < 6; ++i) slots[i] = slot_of(rig, 60U + i, i, 100U + i);
  EXPECT_EQ(port.ring().enqueue(slots, 6), 4U);
  EXPECT_EQ(port.held_pkts(), 4U);
  Packet* pkts[8];
  ASSERT_EQ(port.rx_burst(pkts, 8, 999), 4U);
  for (uint8_t i = 0; i < 4; ++i) {
    EXPECT_EQ(pkts[i]->len_bytes(), 60U + i);
    EXPECT_EQ(pkts[i]->data()[0], i);
    EXPECT_EQ(pkts[i]->meta().entry_ns, 100U + i);
    EXPECT_EQ(pkts[i]->meta().in_interface, kNoInterface);
    EXPECT_EQ(pkts[i]->meta().task_entry_delta_ns, 0U);
    const PacketMeta fresh = fresh_meta(100U + i);
    EXPECT_EQ(std::memcmp(&pkts[i]->meta(), &fresh, sizeof(fresh)), 0);
  }
  EXPECT_EQ(port.stats().rx_pkts, 4U);
  EXPECT_EQ(port.stats().rx_bytes, 60U + 61 + 62 + 63);
  EXPECT_EQ(port.tx_burst(pkts, 4), 4U);
  for (int i = 4; i < 6; ++i) {
    Packet* rest = slots[i].packet<Packet>();
    PacketPool::free_bulk(&rest, 1);
  }
  EXPECT_EQ(port.stats().tx_bytes, 60U + 61 + 62 + 63);
  EXPECT_EQ(rig.pool.available_pkts(), 512U);
}

TEST(RingPort, LoopKeepsBytesAndEntryTimeEvenOfMovedData) {
  PortRig rig;
  RingPort port(2, true);
  Packet* longer = rig.make(60, 7, 42);
  longer->push_front(20);
  longer->data()[0] = 9;
  Packet* shorter = rig.make(60, 8, 43);
  shorter->data()[14] = 5;
  shorter->pull_front(14);
  Packet* third = rig.make(60);
  Packet* in[3] = {longer, shorter, third};
  EXPECT_EQ(port.tx_burst(in, 3), 2U);
  EXPECT_EQ(port.stats().tx_refused_pkts, 1U);
  Packet* out[3];
  ASSERT_EQ(port.rx_burst(out, 3, 0), 2U);
  EXPECT_EQ(out[0]->len_bytes(), 80U);
  EXPECT_EQ(out[0]->data()[0], 9);
  EXPECT_EQ(out[0]->data()[20], 7);
  EXPECT_EQ(out[0]->meta().entry_ns, 42U);
  EXPECT_EQ(out[1]->len_bytes(), 46U);
  EXPECT_EQ(out[1]->data()[0], 5);
  rig.free({out[0], out[1], third});
}

TEST(RingPort, GivesBackWhatItHoldsAndHasOneProducer) {
  PortRig rig;
  {
    RingPort port(8, false);
    port.claim("g0");
    EXPECT_NE(error_of([&] { port.claim("g1"); }).find("g0"), std::string::npos);
    const BurstSlot slot = slot_of(rig, 60, 0, 0);
    port.ring().enqueue(&slot, 1);
  }
  EXPECT_EQ(rig.pool.available_pkts(), 512U);
}

TEST(PortKinds, MistakesAreNamed) {
  Environment env;
  EXPECT_NE(error_of([&] {
              make_port({"p0", "rnig", {}}, env);
            }).find("did you mean 'ring'"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              make_port({"p0", "ring", {{"size", 3}}}, env);
            }).find("ports.p0"),
            std::string::npos);
  for (const PortKindInfo& info : port_kinds()) EXPECT_FALSE(info.help.empty()) << info.kind;
}

TEST(PortIn, SetsItsInterface) {
  PortRig rig;
  auto port = std::make_shared<RingPort>(8, false);
  rig.env.ports["p0"] = port;
  rig.env.interfaces = {{.name = "lan", .port = "p1", .index = 0},
                        {.name = "wan", .port = "p0", .index = 1}};
  auto module = rig.module("port_in", {{"port", "p0"}, {"interface", "wan"}});
  const BurstSlot slot = slot_of(rig, 60, 0, 5);
  port->ring().enqueue(&slot, 1);
  const auto pkts = rig.poll(*module, "port_in");
  ASSERT_EQ(pkts.size(), 1U);
  EXPECT_EQ(pkts[0]->meta().in_interface, 1);
  rig.free(pkts);
  EXPECT_NE(error_of([&] {
              rig.module("port_in", {{"port", "p0"}, {"interface", "lan"}});
            }).find("on port 'p1'"),
            std::string::npos);
}

TEST(PortOut, DropsWhatIsTooLongOrRefused) {
  PortRig rig;
  rig.env.ports["p0"] = std::make_shared<RingPort>(2, true);
  rig.env.interfaces = {{.name = "lan", .port = "p0", .index = 0, .mtu_bytes = 100}};
  auto module = rig.module("port_out", {{"port", "p0"}, {"interface", "lan"}});
  Packet* tagged = rig.make(118);
  tagged->data()[12] = 0x81;
  const auto reasons = rig.consume(
      *module, "port_out", {rig.make(114), rig.make(115), tagged, rig.make(60), rig.make(3)});
  EXPECT_EQ(reasons, (std::vector<std::string>{"mtu_exceeded", "tx_full", "tx_full"}));
  EXPECT_EQ(rig.metered_pkts, 2U);
  Packet* out[4];
  ASSERT_EQ(rig.env.ports["p0"]->rx_burst(out, 4, 0), 2U);
  rig.free({out[0], out[1]});
  EXPECT_EQ(rig.pool.available_pkts(), 512U);
}

// Counts the calls of push().
class LazyPort final : public Port {
 public:
  uint32_t rx_burst(Packet**, uint32_t, uint64_t) noexcept override { return 0; }
  uint32_t tx_burst(Packet**, uint32_t n) noexcept override { return n; }
  [[nodiscard]] bool wants_push() const override { return true; }
  void push() noexcept override { ++pushes; }
  [[nodiscard]] PortStats stats() const override { return {}; }
  uint32_t pushes = 0;
};

TEST(PortOut, PushesDevicesThatMayLeaveFramesLying) {
  PortRig rig;
  const auto lazy = std::make_shared<LazyPort>();
  rig.env.ports["p0"] = lazy;
  rig.env.ports["p1"] = std::make_shared<RingPort>(4, true);
  auto module = rig.module("port_out", {{"port", "p0"}});
  EXPECT_EQ(module->housekeep_interval_ns(), 1'000'000U);
  module->housekeep(*rig.ctx, 1000);
  EXPECT_EQ(lazy->pushes, 1U);
  EXPECT_EQ(rig.module("port_out", {{"port", "p1"}})->housekeep_interval_ns(), 0U);
}

// Takes as many packets as it is told, and records which.
class SlowPort final : public Port {
 public:
  uint32_t rx_burst(Packet**, uint32_t, uint64_t) noexcept override { return 0; }
  uint32_t tx_burst(Packet** pkts, uint32_t n) noexcept override {
    n = std::min(n, room);
    for (uint32_t i = 0; i < n; ++i) taken.push_back(pkts[i]->data()[0]);
    PacketPool::free_bulk(pkts, n);
    room -= n;
    return n;
  }
  [[nodiscard]] PortStats stats() const override { return {}; }
  uint32_t room = 0;
  std::vector<uint8_t> taken;
};

TEST(PortOut, KeepsInOrderWhatThePortDoesNotTake) {
  PortRig rig;
  const auto slow = std::make_shared<SlowPort>();
  rig.env.ports["p0"] = slow;
  auto module = rig.module("port_out", {{"port", "p0"}, {"when_full", "wait"}});
  EXPECT_TRUE(module->wants_backpressure());
  EXPECT_GT(module->room_pkts(0), 256U);
  slow->room = 2;
  std::vector<Packet*> pkts;
  for (uint8_t i = 0; i < 5; ++i) pkts.push_back(rig.make(60, i));
  EXPECT_TRUE(rig.consume(*module, "port_out", pkts).empty());
  EXPECT_EQ(module->held_pkts(), 3U);
  EXPECT_EQ(module->room_pkts(0), 0U);
  // There is room again, but waiting packets go first.
  slow->room = 1;
  EXPECT_TRUE(rig.consume(*module, "port_out", {rig.make(60, 5)}).empty());
  EXPECT_EQ(slow->room, 1U);
  exec::FlowMeter meter(1);
  rig.ctx->meter = &meter;
  module->housekeep(*rig.ctx, 1000);
  EXPECT_EQ(module->held_pkts(), 3U);
  slow->room = 100;
  module->housekeep(*rig.ctx, 1000);
  EXPECT_EQ(slow->taken, (std::vector<uint8_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(module->held_pkts(), 0U);
  EXPECT_GT(module->room_pkts(0), 256U);
  meter.flush(0);
  EXPECT_EQ(meter.sent_pkts(), 4U);
  EXPECT_EQ(rig.pool.available_pkts(), 512U);
}

TEST(PortOut, DropsWhatItHasNoRoomToKeep) {
  PortRig rig(1024);
  rig.env.ports["p0"] = std::make_shared<SlowPort>();
  auto module = rig.module("port_out", {{"port", "p0"}, {"when_full", "wait"}});
  size_t dropped = 0;
  for (uint32_t k = 0; k < 20; ++k) {
    std::vector<Packet*> pkts;
    for (uint32_t i = 0; i < 32; ++i) pkts.push_back(rig.make(60));
    dropped += rig.consume(*module, "port_out", pkts).size();
  }
  EXPECT_EQ(module->held_pkts(), 512U);
  EXPECT_EQ(dropped, 128U);
  module->give_up_held([](Packet* pkt) { PacketPool::free_bulk(&pkt, 1); });
  EXPECT_EQ(rig.pool.available_pkts(), 1024U);
}

TEST(NullPort, TakesEverythingAndGivesNothing) {
  PortRig rig;
  auto port = make_port({"p0", "null", {}}, rig.env);
  rig.env.ports["p0"] = port;
  auto module = rig.module("port_out", {{"port", "p0"}});
  EXPECT_TRUE(rig.consume(*module, "port_out", {rig.make(60), rig.make(1500)}).empty());
  EXPECT_EQ(port->stats().tx_bytes, 1560U);
  Packet* pkts[4];
  EXPECT_EQ(port->rx_burst(pkts, 4, 0), 0U);
  EXPECT_EQ(rig.pool.available_pkts(), 512U);
}

}  // namespace
}  // namespace batchplane::ports
