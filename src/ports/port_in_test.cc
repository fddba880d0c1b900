// SPDX-License-Identifier: BSD-3-Clause
// port_in_test.cc - which frames of its link a router's interface accepts.
#include <gtest/gtest.h>

#include <algorithm>

#include "ports/port_kinds.h"
#include "ports/port_test_util.h"
#include "ports/ring_port.h"

namespace batchplane::ports {
namespace port_in_test {

constexpr net::Mac kLan{2, 0, 0, 0, 0, 1};
constexpr net::Mac kVlan{2, 0, 0, 0, 0, 7};
constexpr net::Mac kElsewhere{2, 0, 0, 0, 0, 9};
constexpr net::Mac kOther{2, 0, 0, 0, 1, 1};
constexpr net::Mac kAll{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

struct InRig : PortRig {
  explicit InRig(const Dict& more = {}) {
    env.ports["p0"] = port;
    env.interfaces = {
        {.name = "lan",
         .port = "p0",
         .index = 0,
         .mac = kLan,
         .addresses = {{0x0a000001, 24}},
         .addresses6 = {{*net::parse_ipv6("2001:db8::12:3456"), 64}}},
        {.name = "vlan", .port = "p0", .index = 1, .mac = kVlan, .addresses = {{0x0a000101, 24}}},
        {.name = "wan", .port = "p1", .index = 2, .mac = kElsewhere}};
    Dict params{{"port", "p0"}, {"interface", "lan"}};
    for (const auto& [key, value] : more) params[key] = value;
    in = module("port_in", params);
  }
  // Sends frames to these MACs in one batch; returns which were accepted.
  std::vector<bool> taken(const std::vector<net::Mac>& macs) {
    std::vector<Packet*> frames;
    for (const net::Mac& mac : macs) frames.push_back(frame(mac));
    return taken(frames);
  }
  std::vector<bool> taken(const std::vector<Packet*>& frames) {
    for (Packet* const each : frames) {
      const BurstSlot slot = BurstSlot::make(each, each->len_bytes(), 5);
      EXPECT_EQ(port->ring().enqueue(&slot, 1), 1U);
    }
    const std::vector<Packet*> left = poll(*in, "port_in");
    reasons = take_drops();
    std::vector<bool> is_taken;
    for (Packet* const each : frames) is_taken.push_back(std::ranges::count(left, each) == 1);
    EXPECT_EQ(left.size() + reasons.size(), frames.size());
    EXPECT_TRUE(std::ranges::all_of(left, [](Packet* p) { return p->meta().in_interface == 0; }));
    free(left);
    return is_taken;
  }
  Packet* frame(const net::Mac& mac, uint16_t type = net::kTypeArp, uint32_t len_bytes = 60) {
    Packet* const pkt = make(len_bytes);
    std::ranges::copy(mac, pkt->data());
    net::store16(pkt->data() + 12, type);
    return pkt;
  }
  // A packet to one host in a multicast or broadcast frame.
  Packet* ipv4(const net::Mac& mac, uint32_t dst) {
    Packet* const pkt = frame(mac, net::kTypeIpv4);
    net::store32(pkt->data() + net::kEthBytes + net::kIpDst, dst);
    return pkt;
  }
  Packet* ipv6(const net::Mac& mac, const char* dst) {
    Packet* const pkt = frame(mac, net::kTypeIpv6);
    net::store_address6(pkt->data() + net::kEthBytes + net::kIp6Dst, *net::parse_ipv6(dst));
    return pkt;
  }

  std::shared_ptr<RingPort> port = std::make_shared<RingPort>(64, false);
  std::unique_ptr<Module> in;
  std::vector<std::string> reasons;
};

using Taken = std::vector<bool>;

TEST(PortIn, TakesItsOwnMacAndNoOtherHosts) {
  InRig rig;
  EXPECT_EQ(rig.taken({kLan, kLan, kLan}), Taken(3, true));
  EXPECT_EQ(rig.taken({kLan, kOther, kLan, kElsewhere, kLan}),
            (Taken{true, false, true, false, true}));
  EXPECT_EQ(rig.reasons, std::vector<std::string>(2, "not_our_mac"));
  EXPECT_EQ(rig.taken({kOther, kOther}), Taken(2, false));
}

TEST(PortIn, TakesTheMacsOfOtherInterfacesOfItsPort) {
  InRig rig;
  EXPECT_EQ(rig.taken({kVlan, kLan, kElsewhere}), (Taken{true, true, false}));
}

TEST(PortIn, TakesGroupsThatARouterJoins) {
  InRig rig;
  EXPECT_EQ(rig.taken({kAll,
                       {0x01, 0x00, 0x5e, 0, 0, 1},
                       {0x01, 0x00, 0x5e, 0, 0, 2},
                       {0x33, 0x33, 0, 0, 0, 1},
                       {0x33, 0x33, 0, 0, 0, 2},
                       {0x33, 0x33, 0xff, 0x12, 0x34, 0x56}}),
            Taken(6, true));
  EXPECT_EQ(rig.taken({{0x01, 0x00, 0x5e, 0, 0, 0xfb},
                       {0x01, 0x00, 0x5e, 0x7f, 0xff, 0xfa},
                       {0x33, 0x33, 0, 0, 0, 0xfb},
                       {0x33, 0x33, 0xff, 0x12, 0x34, 0x57},
                       {0x01, 0x80, 0xc2, 0, 0, 0}}),
            Taken(5, false));
}

TEST(PortIn, DropsPacketsForOneHostInFramesForAll) {
  InRig rig;
  EXPECT_EQ(rig.taken({rig.ipv4(kAll, 0x08080808), rig.ipv4(kLan, 0x08080808),
                       rig.ipv4(kAll, 0xffffffff), rig.ipv4(kAll, 0x0a0000ff),
                       rig.ipv4(kAll, 0x0a000001), rig.ipv4(kAll, 0x0a0001ff)}),
            (Taken{false, true, true, true, true, true}));
  EXPECT_EQ(rig.reasons, std::vector<std::string>(1, "unicast_in_group_frame"));
  EXPECT_EQ(rig.taken({rig.ipv6(kAll, "2001:db8::9"), rig.ipv6(kAll, "ff02::1"),
                       rig.ipv6(kLan, "2001:db8::9")}),
            (Taken{false, true, true}));
}

TEST(PortIn, LeavesShortFramesToOthers) {
  InRig rig;
  EXPECT_EQ(rig.taken({rig.make(3), rig.make(8), rig.make(13), rig.frame(kOther, 0, 14)}),
            (Taken{true, true, true, false}));
}

TEST(PortIn, TakesAllWhereItIsAskedToOrHasNothingToCompare) {
  InRig bridge({{"any_mac", true}});
  EXPECT_EQ(bridge.taken({kLan, kOther, kElsewhere}), Taken(3, true));
  InRig rig;
  rig.env.interfaces[0].mac = {};
  rig.in = rig.module("port_in", {{"port", "p0"}, {"interface", "lan"}});
  EXPECT_EQ(rig.taken({kLan, kOther}), Taken(2, true));
}

// What a ring in memory takes is the loop's; a device's polls are the module's own work.
TEST(PortIn, TimesThePollsOfDevicesOnly) {
  PortRig rig;
  const auto times_polls_of = [&](const PortSpec& spec) {
    rig.env.ports[spec.name] = make_port(spec, rig.env);
    return rig.module("port_in", {{"port", spec.name}})->times_polls();
  };
  EXPECT_FALSE(times_polls_of({"r", "ring", {}}));
  EXPECT_FALSE(times_polls_of({"n", "null", {}}));
  EXPECT_TRUE(times_polls_of({"p", "pcap", {{"write", testing::TempDir() + "times_polls.pcap"}}}));
}

}  // namespace port_in_test
}  // namespace batchplane::ports
