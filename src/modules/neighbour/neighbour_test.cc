// SPDX-License-Identifier: BSD-3-Clause
// neighbour_test.cc - ARP in all its cases, with the clock set by the test.
#include <gtest/gtest.h>

#include <thread>

#include "base/rng.h"
#include "module_harness.h"
#include "modules/headers/arp.h"
#include "modules/route/route_commands.h"

namespace batchplane {
namespace neighbour_test {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1'000'000'000;
const net::Mac kLan{2, 0, 0, 0, 0, 0x10};
const net::Mac kWan{2, 0, 0, 0, 0, 0x11};
const net::Mac kHost{2, 0, 0, 0, 0, 0x99};
const net::Mac kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

uint32_t ip(const std::string& text) { return *net::parse_ipv4(text); }

std::unique_ptr<Environment> router_environment() {
  auto env = std::make_unique<Environment>();
  env->interfaces.push_back(
      {.name = "lan", .index = 0, .mac = kLan, .addresses = {{ip("10.0.0.1"), 24}}});
  env->interfaces.push_back({.name = "wan",
                             .index = 1,
                             .mac = kWan,
                             .mtu_bytes = 1000,
                             .addresses = {{ip("10.1.0.1"), 24}}});
  return env;
}

const net::Arp& arp_of(const Bytes& frame) {
  return header_at<net::Arp>(frame.data() + net::kEthBytes);
}
uint16_t type_of(const Bytes& frame) { return header_at<net::Ethernet>(frame.data()).type; }

Bytes arp_frame(uint16_t operation, const net::Mac& sender_mac, const std::string& sender,
                const std::string& target, const net::Mac& dst = kBroadcast) {
  Bytes frame(arp::kFrameBytes);
  arp::write_eth(frame.data(), dst, sender_mac, net::kTypeArp);
  arp::write_message(header_at<net::Arp>(frame.data() + net::kEthBytes), operation, sender_mac,
                     ip(sender), {}, ip(target));
  return frame;
}

class NeighbourTest : public testing::Test {
 protected:
  static constexpr uint32_t kOnLan = 0, kViaWan = 1, kFixed = 2;

  NeighbourTest() : env_(router_environment()), table_(shared_route_table(*env_, "main")) {
    table_->build({.max_prefixes = 16, .max_next_hops = 8});
    table_->hops().set(kOnLan, {.interface = 0});
    table_->hops().set(kViaWan, {.interface = 1, .gateway = ip("10.1.0.254")});
    table_->hops().set(kFixed, {.interface = 1, .has_mac = true, .mac = kHost});
    make({});
  }
  void make(Dict params) {
    harness_.reset();
    params["table"] = "main";
    params.emplace("announce", false);
    params.emplace("hold_pkts", 3);
    params.emplace("max_hold_pkts", 8);
    params.emplace("max_tries", 3);
    params.emplace("retry_ns", kSecond);
    params.emplace("reachable_ns", 30 * kSecond);
    harness_ = std::make_unique<ModuleHarness>("neighbour", params, 2, env_.get());
    now_ns_ = 100 * kSecond;
    harness_->set_now_ns(now_ns_);
  }
  Outcome send(const std::string& to, uint32_t next_hop = kOnLan, uint32_t len_bytes = 60) {
    harness_->meta().next_hop = next_hop;
    harness_->meta().in_interface = 1;
    return harness_->run({make_frame({.ip_dst = ip(to), .len_bytes = len_bytes})});
  }
  Outcome hear(const Bytes& frame, uint16_t interface = 0) {
    harness_->meta().in_interface = interface;
    return harness_->run({frame});
  }
  // Runs housekeeping tick by tick for `ns`; collects everything that comes out.
  Outcome wait(uint64_t ns) {
    Outcome all;
    for (uint64_t passed = 0; passed < ns; passed += 10 * kMs) {
      now_ns_ += 10 * kMs;
      harness_->set_now_ns(now_ns_);
      const Outcome outcome = harness_->housekeep();
      all.emitted.insert(all.emitted.end(), outcome.emitted.begin(), outcome.emitted.end());
      all.drops.insert(all.drops.end(), outcome.drops.begin(), outcome.drops.end());
    }
    return all;
  }
  std::string state_of(const std::string& address) {
    const Value list = harness_->command("list");
    for (const Value& entry : list["neighbours"].as_list()) {
      if (entry["address"].as_string() == address) return entry["state"].as_string();
    }
    return "";
  }
  void resolve(const std::string& address) {
    hear(arp_frame(arp::kRequest, kHost, address, "10.0.0.1"));
  }
  void TearDown() override { EXPECT_EQ(harness_->leaked_pkts(), 0U); }

  std::unique_ptr<Environment> env_;
  std::shared_ptr<RouteTable> table_;
  std::unique_ptr<ModuleHarness> harness_;
  uint64_t now_ns_ = 0;
};

TEST_F(NeighbourTest, AsksHoldsAndSendsInOrderOnceAnswered) {
  Outcome outcome = send("10.0.0.7");
  EXPECT_EQ(outcome.kept_pkts, 1U);
  ASSERT_EQ(outcome.at(0).size(), 1U);
  const Bytes request = outcome.at(0)[0];
  ASSERT_EQ(request.size(), 60U);
  EXPECT_TRUE(std::equal(kBroadcast.begin(), kBroadcast.end(), request.begin()));
  EXPECT_TRUE(std::equal(kLan.begin(), kLan.end(), request.begin() + 6));
  EXPECT_EQ(type_of(request), net::kTypeArp);
  EXPECT_TRUE(arp::is_valid(arp_of(request), net::kArpBytes));
  EXPECT_EQ(arp_of(request).operation, arp::kRequest);
  EXPECT_EQ(arp_of(request).sender_ip, ip("10.0.0.1"));
  EXPECT_EQ(arp_of(request).target_ip, ip("10.0.0.7"));
  EXPECT_EQ(send("10.0.0.7", kOnLan, 61).emitted.size(), 0U);  // request already sent
  EXPECT_EQ(harness_->module().held_pkts(), 2U);

  outcome = hear(arp_frame(arp::kReply, kHost, "10.0.0.7", "10.0.0.1", kLan));
  EXPECT_EQ(outcome.dropped_for("arp_done"), 1U);
  ASSERT_EQ(outcome.at(0).size(), 2U);
  EXPECT_EQ(outcome.at(0)[0].size(), 60U);
  EXPECT_EQ(outcome.at(0)[1].size(), 61U);
  for (const Bytes& frame : outcome.at(0)) {
    EXPECT_TRUE(std::equal(kHost.begin(), kHost.end(), frame.begin()));
    EXPECT_TRUE(std::equal(kLan.begin(), kLan.end(), frame.begin() + 6));
    EXPECT_EQ(type_of(frame), net::kTypeIpv4);
  }
  EXPECT_EQ(harness_->module().held_pkts(), 0U);
  EXPECT_EQ(send("10.0.0.7").outputs.at(0).gate, 0U);
}

TEST_F(NeighbourTest, GatewayAndFixedMacAreUsed) {
  EXPECT_EQ(arp_of(send("8.8.8.8", kViaWan).at(1).at(0)).target_ip, ip("10.1.0.254"));
  const Outcome outcome = send("9.9.9.9", kFixed);
  ASSERT_EQ(outcome.gates(), std::vector<uint32_t>{1});
  EXPECT_TRUE(std::equal(kHost.begin(), kHost.end(), outcome.outputs[0].bytes.begin()));
  EXPECT_TRUE(std::equal(kWan.begin(), kWan.end(), outcome.outputs[0].bytes.begin() + 6));
}

TEST_F(NeighbourTest, AnswersRequestsForItsAddressesAndLearnsTheAsker) {
  const Outcome outcome = hear(arp_frame(arp::kRequest, kHost, "10.0.0.7", "10.0.0.1"));
  ASSERT_EQ(outcome.gates(), std::vector<uint32_t>{0});
  const Bytes& reply = outcome.outputs[0].bytes;
  EXPECT_TRUE(std::equal(kHost.begin(), kHost.end(), reply.begin()));
  EXPECT_TRUE(std::equal(kLan.begin(), kLan.end(), reply.begin() + 6));
  EXPECT_EQ(arp_of(reply).operation, arp::kReply);
  EXPECT_EQ(arp_of(reply).sender_mac, kLan);
  EXPECT_EQ(arp_of(reply).sender_ip, ip("10.0.0.1"));
  EXPECT_EQ(arp_of(reply).target_mac, kHost);
  EXPECT_EQ(arp_of(reply).target_ip, ip("10.0.0.7"));
  EXPECT_EQ(send("10.0.0.7").outputs.size(), 1U);
}

TEST_F(NeighbourTest, SilentOnForeignAddressesProbesAreAnsweredWithoutLearning) {
  EXPECT_EQ(hear(arp_frame(arp::kRequest, kHost, "10.0.0.7", "10.0.0.2")).dropped_for("arp_done"),
            1U);
  EXPECT_EQ(hear(arp_frame(arp::kRequest, kHost, "10.0.0.7", "10.1.0.1")).dropped_for("arp_done"),
            1U);
  EXPECT_EQ(hear(arp_frame(arp::kRequest, kHost, "0.0.0.0", "10.0.0.1")).outputs.size(), 1U);
  EXPECT_EQ(hear(arp_frame(arp::kRequest, kHost, "99.0.0.7", "10.0.0.1")).outputs.size(), 1U);
  EXPECT_EQ(hear(arp_frame(arp::kReply, kHost, "10.0.0.8", "10.0.0.1")).dropped_for("arp_done"),
            1U);
  EXPECT_TRUE(harness_->command("list")["neighbours"].as_list().empty());
}

TEST_F(NeighbourTest, GratuitousArpCorrectsWhoIsKnownOnly) {
  const net::Mac moved{2, 0, 0, 0, 0, 0x55};
  resolve("10.0.0.7");
  hear(arp_frame(arp::kRequest, moved, "10.0.0.7", "10.0.0.7"));
  hear(arp_frame(arp::kRequest, moved, "10.0.0.8", "10.0.0.8"));
  EXPECT_TRUE(std::equal(moved.begin(), moved.end(), send("10.0.0.7").outputs.at(0).bytes.begin()));
  EXPECT_EQ(state_of("10.0.0.8"), "");
}

TEST_F(NeighbourTest, ClaimOfAnOwnAddressIsAConflict) {
  EXPECT_EQ(
      hear(arp_frame(arp::kRequest, kHost, "10.0.0.1", "10.0.0.1")).dropped_for("arp_conflict"),
      1U);
}

TEST_F(NeighbourTest, MalformedArpIsDroppedAtEveryLengthAndField) {
  const Bytes good = arp_frame(arp::kRequest, kHost, "10.0.0.7", "10.0.0.1");
  for (uint32_t len = 0; len < 42; ++len) {
    const Outcome outcome = hear(Bytes(good.begin(), good.begin() + len));
    EXPECT_EQ(outcome.dropped_for(len < 14 ? "too_short" : "arp_malformed"), 1U) << len;
  }
  EXPECT_EQ(hear(Bytes(good.begin(), good.begin() + 42)).outputs.size(), 1U);
  for (const uint32_t at : {14U, 16U, 18U, 19U, 20U}) {
    Bytes bad = good;
    bad[at] ^= 0x40;
    EXPECT_EQ(hear(bad).dropped_for("arp_malformed"), 1U) << at;
  }
  EXPECT_EQ(hear(arp_frame(arp::kRequest, kBroadcast, "10.0.0.7", "10.0.0.1"))
                .dropped_for("arp_malformed"),
            1U);
  EXPECT_EQ(hear(arp_frame(arp::kRequest, {}, "10.0.0.7", "10.0.0.1")).dropped_for("arp_malformed"),
            1U);
  EXPECT_EQ(hear(good, kNoInterface).dropped_for("no_interface"), 1U);
  EXPECT_EQ(hear(good, 2).dropped_for("no_interface"), 1U);
  Rng rng(3);
  for (uint32_t round = 0; round < 3000; ++round) {
    Bytes frame(good.begin(), good.begin() + 14 + rng.below(47));
    for (uint32_t k = 0; k < 3; ++k) {
      frame[12 + rng.below(static_cast<uint32_t>(frame.size()) - 12)] =
          static_cast<uint8_t>(rng.next());
    }
    hear(frame);
  }
}

TEST_F(NeighbourTest, BadNextHopsAndShortPacketsAreDropped) {
  EXPECT_EQ(send("10.0.0.7", 5).dropped_for("no_interface"), 1U);
  EXPECT_EQ(send("10.0.0.7", ~0U).dropped_for("no_interface"), 1U);
  EXPECT_EQ(send("224.0.0.5").dropped_for("neighbour_unreachable"), 1U);
  harness_->meta().next_hop = kOnLan;
  const Bytes frame = make_frame();
  for (uint32_t len = 0; len < 34; ++len) {
    EXPECT_EQ(harness_->run({Bytes(frame.begin(), frame.begin() + len)}).dropped_for("too_short"),
              1U);
  }
}

TEST_F(NeighbourTest, MtuIsThatOfTheOutgoingInterface) {
  EXPECT_EQ(send("9.9.9.9", kFixed, 14 + 1000).outputs.size(), 1U);
  EXPECT_EQ(send("9.9.9.9", kFixed, 14 + 1001).dropped_for("mtu_exceeded"), 1U);
}

TEST_F(NeighbourTest, HoldsAreBoundedPerNeighbourAndInTotal) {
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(send("10.0.0.7").kept_pkts, 1U);
  EXPECT_EQ(send("10.0.0.7").dropped_for("neighbour_hold_full"), 1U);
  for (const char* other : {"10.0.0.8", "10.0.0.9"}) {
    for (uint32_t i = 0; i < 3; ++i) send(other);
  }
  EXPECT_EQ(harness_->module().held_pkts(), 8U);
  EXPECT_EQ(harness_->module().max_held_pkts(), 8U);
  hear(arp_frame(arp::kReply, kHost, "10.0.0.8", "10.0.0.1"));
  EXPECT_EQ(harness_->module().held_pkts(), 5U);
  EXPECT_EQ(send("10.0.0.9").kept_pkts, 1U);
}

TEST_F(NeighbourTest, RetriesThenGivesUpAndCanTryAgain) {
  EXPECT_EQ(send("10.0.0.7").emitted.size(), 1U);
  send("10.0.0.7");
  Outcome outcome = wait(2500 * kMs);
  EXPECT_EQ(outcome.emitted.size(), 2U);
  EXPECT_TRUE(outcome.drops.empty());
  outcome = wait(1000 * kMs);
  EXPECT_EQ(outcome.dropped_for("neighbour_unreachable"), 2U);
  EXPECT_EQ(harness_->module().held_pkts(), 0U);
  EXPECT_EQ(state_of("10.0.0.7"), "");
  EXPECT_EQ(send("10.0.0.7").emitted.size(), 1U);
}

TEST_F(NeighbourTest, UsedNeighboursAreAskedAgainAndUnusedForgotten) {
  resolve("10.0.0.7");
  resolve("10.0.0.8");
  send("10.0.0.7");
  EXPECT_EQ(wait(29 * kSecond).emitted.size(), 0U);
  Outcome outcome = wait(1500 * kMs);
  EXPECT_EQ(state_of("10.0.0.8"), "");
  EXPECT_EQ(state_of("10.0.0.7"), "probing");
  ASSERT_EQ(outcome.emitted.size(), 1U);
  EXPECT_TRUE(std::equal(kHost.begin(), kHost.end(), outcome.emitted[0].bytes.begin()));  // unicast
  EXPECT_EQ(send("10.0.0.7").outputs.size(), 1U);  // still used while probed
  hear(arp_frame(arp::kReply, kHost, "10.0.0.7", "10.0.0.1"));
  EXPECT_EQ(state_of("10.0.0.7"), "reachable");
  send("10.0.0.7");
  wait(34 * kSecond);  // now the neighbour stays silent
  EXPECT_EQ(state_of("10.0.0.7"), "");
}

TEST_F(NeighbourTest, ScanCannotGrowTheTableNorPushOutLiveNeighbours) {
  make({{"max_neighbours", 64}, {"max_hold_pkts", 100}, {"hold_pkts", 1}});
  resolve("10.0.0.7");
  send("10.0.0.7");
  uint32_t refused = 0;
  for (uint32_t host = 20; host < 220; ++host) {
    refused += send("10.0.0." + std::to_string(host)).dropped_for("neighbour_table_full");
  }
  EXPECT_EQ(refused, 200U - 16);
  for (uint32_t host = 20; host < 250; ++host) resolve("10.0.0." + std::to_string(host));
  EXPECT_LE(harness_->command("list")["neighbours"].as_list().size(), 64U);
  EXPECT_EQ(send("10.0.0.7").outputs.size(), 1U);
}

TEST_F(NeighbourTest, FloodOfAnswersLeavesEverythingAccountedFor) {
  make({{"max_neighbours", 4096}, {"max_hold_pkts", 1000}, {"hold_pkts", 16}});
  std::vector<Bytes> replies;
  for (uint32_t host = 10; host < 70; ++host) {
    for (uint32_t i = 0; i < 14; ++i) send("10.0.0." + std::to_string(host));
    replies.push_back(arp_frame(arp::kReply, kHost, "10.0.0." + std::to_string(host), "10.0.0.1"));
  }
  EXPECT_EQ(harness_->module().held_pkts(), 840U);
  harness_->meta().in_interface = 0;
  const Outcome outcome = harness_->run(replies);
  EXPECT_EQ(outcome.emitted.size(), 512U);  // the most that one call may send
  EXPECT_EQ(wait(200 * kMs).emitted.size(), 328U);
  EXPECT_EQ(harness_->module().held_pkts(), 0U);
}

TEST_F(NeighbourTest, StaticEntriesComeFromParametersAndCommandsAndAreSaved) {
  make({{"neighbours",
         List{Dict{{"interface", "lan"}, {"address", "10.0.0.5"}, {"mac", "02:00:00:00:00:99"}}}}});
  EXPECT_EQ(send("10.0.0.6").kept_pkts, 1U);
  harness_->command(
      "add", Dict{{"interface", "lan"}, {"address", "10.0.0.6"}, {"mac", "02:00:00:00:00:77"}});
  const Outcome outcome = wait(200 * kMs);
  EXPECT_EQ(outcome.emitted.size(), 1U);  // the packet that waited for it
  EXPECT_EQ(send("10.0.0.5").outputs.size(), 1U);
  EXPECT_EQ(state_of("10.0.0.6"), "static");
  hear(arp_frame(arp::kReply, kHost, "10.0.0.6", "10.0.0.1"));
  EXPECT_EQ(send("10.0.0.6").outputs.at(0).bytes[5], 0x77);
  wait(100 * kSecond);
  EXPECT_EQ(state_of("10.0.0.5"), "static");
  harness_->command("delete", Dict{{"interface", "lan"}, {"address", "10.0.0.5"}});
  wait(10 * kMs);
  EXPECT_EQ(state_of("10.0.0.5"), "");
  const Dict saved = harness_->module().saved_params();
  ASSERT_EQ(saved.at("neighbours").as_list().size(), 1U);
  EXPECT_EQ(saved.at("neighbours").as_list()[0]["address"].as_string(), "10.0.0.6");
  EXPECT_THROW(harness_->command("add", Dict{{"interface", "dmz"}}), ConfigError);
  EXPECT_THROW(harness_->command("fly"), ConfigError);
}

TEST_F(NeighbourTest, AnnouncesItsAddressesOnce) {
  make({{"announce", true}});
  const Outcome outcome = wait(kSecond);
  ASSERT_EQ(outcome.emitted.size(), 2U);
  const Bytes frame = outcome.at(1).at(0);
  EXPECT_EQ(arp_of(frame).sender_ip, ip("10.1.0.1"));
  EXPECT_EQ(arp_of(frame).target_ip, ip("10.1.0.1"));
}

TEST_F(NeighbourTest, NewGraphTakesOverNeighboursAndHeldPackets) {
  resolve("10.0.0.7");
  send("10.0.0.8");
  ModuleHarness next(
      "neighbour", {{"table", "main"}, {"announce", false}, {"hold_pkts", 5}, {"max_hold_pkts", 8}},
      2, env_.get());
  next.module().adopt(harness_->module());
  EXPECT_EQ(harness_->module().held_pkts(), 0U);
  EXPECT_EQ(next.module().held_pkts(), 1U);
  uint32_t given = 0;
  next.module().give_up_held([&](Packet* pkt) {
    ++given;
    harness_->ctx().free(pkt);
  });
  EXPECT_EQ(given, 1U);
  next.meta().next_hop = kOnLan;
  EXPECT_EQ(next.run({make_frame({.ip_dst = ip("10.0.0.7")})}).outputs.size(), 1U);
}

Dict entry(const std::string& address, const std::string& mac) {
  return {{"interface", "lan"}, {"address", address}, {"mac", mac}};
}

// Moves the state from `old` to `next` as an apply does, then runs 20 ticks of `next`.
std::map<std::string, std::string> states_after_apply(ModuleHarness& next, ModuleHarness& old) {
  next.module().inherit(old.module());
  next.module().adopt(old.module());
  for (uint32_t i = 0; i < 20; ++i) next.housekeep();
  std::map<std::string, std::string> states;
  const Value list = next.command("list");
  for (const Value& neighbour : list["neighbours"].as_list()) {
    states[neighbour["address"].as_string()] = neighbour["state"].as_string();
  }
  return states;
}

TEST_F(NeighbourTest, NewFileDecidesAboutStaticEntriesAndCommandsStay) {
  make({{"neighbours",
         List{entry("10.0.0.20", "02:00:00:00:00:20"), entry("10.0.0.21", "02:00:00:00:00:21")}}});
  wait(20 * kMs);
  harness_->command("add", entry("10.0.0.30", "02:00:00:00:00:30"));
  resolve("10.0.0.7");
  ModuleHarness next("neighbour",
                     {{"table", "main"},
                      {"announce", false},
                      {"max_hold_pkts", 8},
                      {"neighbours", List{entry("10.0.0.21", "02:00:00:00:00:99")}}},
                     2, env_.get());
  next.set_now_ns(now_ns_);
  EXPECT_EQ(states_after_apply(next, *harness_),
            (std::map<std::string, std::string>{
                {"10.0.0.21", "static"}, {"10.0.0.30", "static"}, {"10.0.0.7", "reachable"}}));
  const Value saved = next.module().saved_params().at("neighbours");
  ASSERT_EQ(saved.as_list().size(), 2U);
  EXPECT_EQ(saved.as_list()[0]["mac"].as_string(), "02:00:00:00:00:99");
}

TEST_F(NeighbourTest, SameFileKeepsLiveEditsOfStaticEntries) {
  const List declared{entry("10.0.0.20", "02:00:00:00:00:20"),
                      entry("10.0.0.21", "02:00:00:00:00:21")};
  make({{"neighbours", declared}});
  wait(20 * kMs);
  // The old worker does not see these orders any more: the new graph has to carry them out.
  harness_->command("delete", Dict{{"interface", "lan"}, {"address", "10.0.0.20"}});
  harness_->command("add", entry("10.0.0.30", "02:00:00:00:00:30"));
  ModuleHarness next(
      "neighbour",
      {{"table", "main"}, {"announce", false}, {"max_hold_pkts", 8}, {"neighbours", declared}}, 2,
      env_.get());
  next.set_now_ns(now_ns_);
  EXPECT_EQ(states_after_apply(next, *harness_),
            (std::map<std::string, std::string>{{"10.0.0.21", "static"}, {"10.0.0.30", "static"}}));
}

TEST_F(NeighbourTest, StaticEntryThatGoesWhilePacketsWaitIsAskedAgain) {
  EXPECT_EQ(send("10.0.0.7").kept_pkts, 1U);
  harness_->command("add", entry("10.0.0.7", "02:00:00:00:00:99"));
  harness_->command("delete", Dict{{"interface", "lan"}, {"address", "10.0.0.7"}});
  const Outcome outcome = wait(200 * kMs);
  ASSERT_EQ(outcome.emitted.size(), 2U);  // the packet, and a request
  EXPECT_EQ(harness_->module().held_pkts(), 0U);
  wait(10 * kSecond);
  EXPECT_TRUE(harness_->command("list")["neighbours"].as_list().empty());
}

TEST_F(NeighbourTest, PacketsWithoutMemoryForRequestsAreRetried) {
  std::vector<Packet*> hoard(ModuleHarness::kPoolPkts - 1);
  ASSERT_TRUE(harness_->pool().alloc_bulk(hoard.data(), static_cast<uint32_t>(hoard.size())));
  EXPECT_EQ(send("10.0.0.7").emitted.size(), 0U);
  PacketPool::free_bulk(hoard.data(), static_cast<uint32_t>(hoard.size()));
  EXPECT_EQ(wait(1100 * kMs).emitted.size(), 1U);
}

TEST_F(NeighbourTest, ListMayBeReadWhileTheWorkerLearns) {
  std::atomic<bool> is_done{false};
  uint32_t torn = 0;
  std::thread reader([&] {
    while (!is_done.load()) {
      const Value list = harness_->command("list");
      for (const Value& entry : list["neighbours"].as_list()) {
        const uint32_t address = ip(entry["address"].as_string());
        if (entry.has("mac") && (*net::parse_mac(entry["mac"].as_string()))[5] != (address & 0xff))
          ++torn;
      }
    }
  });
  for (uint32_t i = 0; i < 2000; ++i) {
    const uint8_t host = static_cast<uint8_t>(10 + i % 40);
    const net::Mac mac{2, 0, 0, 0, 0, host};
    hear(arp_frame(arp::kRequest, mac, "10.0.0." + std::to_string(host), "10.0.0.1"));
    if (i % 500 == 499) wait(40 * kSecond);
  }
  is_done = true;
  reader.join();
  EXPECT_EQ(torn, 0U);
}

}  // namespace neighbour_test
}  // namespace batchplane
