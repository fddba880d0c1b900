// SPDX-License-Identifier: BSD-3-Clause
// neighbour6_test.cc - neighbour discovery byte by byte: solicitations, replies, learning, held
// packets, aging, router advertisements, and messages that must be rejected.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "frames6.h"
#include "modules/route/route_commands.h"

namespace batchplane {
namespace neighbour6_test {

constexpr net::Mac kHostMac{2, 0, 0, 0, 0, 0x99};
constexpr net::Mac kLanMac{2, 0, 0, 0, 0, 0x0a};
constexpr uint64_t kSecond = 1'000'000'000;

Bytes mac_option(uint8_t type, const net::Mac& mac) {
  Bytes option{type, 1};
  option.insert(option.end(), mac.begin(), mac.end());
  return option;
}

// A solicitation or advertisement.
struct Message {
  uint8_t type = 135;
  uint8_t flags = 0;
  std::string target = "2001:db8:a::1";
  std::string src = "2001:db8:a::99";
  std::string dst = "ff02::1:ff00:1";
  Bytes options = mac_option(1, kHostMac);
  uint8_t hop_limit = 255;
  uint8_t code = 0;
};
Bytes make(const Message& m) {
  Bytes message(24);
  message[0] = m.type;
  message[1] = m.code;
  message[4] = m.flags;
  net::store_address6(&message[8], ip6(m.target));
  message.insert(message.end(), m.options.begin(), m.options.end());
  return make_icmp6({.src = kHostMac, .ip_src = m.src, .ip_dst = m.dst, .hop_limit = m.hop_limit},
                    message);
}
Message advert(const std::string& target, const net::Mac& mac, uint8_t flags) {
  return {.type = 136,
          .flags = flags,
          .target = target,
          .src = target,
          .dst = "2001:db8:a::1",
          .options = mac_option(2, mac)};
}

class Neighbour6Test : public testing::Test {
 protected:
  Neighbour6Test() : env_(environment6()), table_(shared_route_table<Ipv6Family>(*env_, "main")) {
    table_->build({.max_prefixes = 16, .max_next_hops = 8, .next_hop_bytes = 4});
    table_->hops().set(0, {.interface = 0});
    table_->hops().set(1, {.interface = 1, .gateway6 = ip6("fe80::5")});
    table_->hops().set(2, {.interface = 0, .has_mac = true, .mac = {2, 9, 9, 9, 9, 9}});
    table_->hops().set(3, {.interface = kArrivalInterface});
    make_module();
  }
  void make_module(Dict more = {}) {
    Dict params{{"table", "main"}, {"announce", false}, {"hold_pkts", 3}};
    for (auto& [key, value] : more) params[key] = value;
    module_ = std::make_unique<ModuleHarness>("neighbour6", params, 2, env_.get());
    module_->meta().in_interface = 0;
  }
  std::string fate(const Bytes& frame) {
    const Outcome outcome = module_->run({frame});
    if (!outcome.drops.empty()) return outcome.drops[0].reason;
    return outcome.outputs.empty() ? "held" : "out";
  }
  Outcome send(const std::string& dst, uint32_t next_hop = 0) {
    module_->meta().next_hop = next_hop;
    return module_->run({make_frame6({.ip_dst = dst})});
  }

  std::unique_ptr<Environment> env_;
  std::shared_ptr<RouteTable6> table_;
  std::unique_ptr<ModuleHarness> module_;
};

TEST_F(Neighbour6Test, AsksHoldsAndSendsWhenTheAnswerComes) {
  const Outcome first = send("2001:db8:a::99");
  EXPECT_EQ(first.kept_pkts, 1U);
  ASSERT_EQ(first.emitted.size(), 1U);
  const Bytes& question = first.emitted[0].bytes;
  EXPECT_EQ(question, make_icmp6({.dst = {0x33, 0x33, 0xff, 0, 0, 0x99},
                                  .src = kLanMac,
                                  .ip_src = "2001:db8:a::1",
                                  .ip_dst = "ff02::1:ff00:99",
                                  .hop_limit = 255},
                                 [] {
                                   Bytes m(24);
                                   m[0] = 135;
                                   net::store_address6(&m[8], ip6("2001:db8:a::99"));
                                   const Bytes option = mac_option(1, kLanMac);
                                   m.insert(m.end(), option.begin(), option.end());
                                   return m;
                                 }()));
  send("2001:db8:a::99");
  EXPECT_EQ(module_->module().held_pkts(), 2U);
  const Outcome answer = module_->run({make(advert("2001:db8:a::99", kHostMac, 0x60))});
  EXPECT_EQ(answer.dropped_for("nd_done"), 1U);
  ASSERT_EQ(answer.at(0).size(), 2U);
  Bytes expected = make_frame6({.dst = kHostMac, .src = kLanMac, .ip_dst = "2001:db8:a::99"});
  EXPECT_EQ(answer.at(0)[0], expected);
  EXPECT_EQ(send("2001:db8:a::99").at(0), std::vector<Bytes>{expected});
  EXPECT_EQ(module_->leaked_pkts(), 0U);
}

TEST_F(Neighbour6Test, AnswersForItsOwnAddressesOnly) {
  const Outcome outcome = module_->run({make({})});
  ASSERT_EQ(outcome.gates(), std::vector<uint32_t>{0});
  Bytes message(24);
  message[0] = 136;
  message[4] = 0xe0;
  net::store_address6(&message[8], ip6("2001:db8:a::1"));
  const Bytes option = mac_option(2, kLanMac);
  message.insert(message.end(), option.begin(), option.end());
  EXPECT_EQ(outcome.outputs[0].bytes, make_icmp6({.dst = kHostMac,
                                                  .src = kLanMac,
                                                  .ip_src = "2001:db8:a::1",
                                                  .ip_dst = "2001:db8:a::99",
                                                  .hop_limit = 255},
                                                 message));
  EXPECT_EQ(send("2001:db8:a::99").at(0).size(), 1U) << "the asker was not learnt";
  EXPECT_EQ(fate(make({.target = "2001:db8:a::2"})), "nd_done");
  EXPECT_EQ(fate(make({.target = "2001:db8:b::1"})), "nd_done");  // other interface
  // Unicast solicitation without an option: the frame's source MAC gets the reply.
  const Outcome direct = module_->run({make({.dst = "2001:db8:a::1", .options = {}})});
  ASSERT_EQ(direct.outputs.size(), 1U);
  EXPECT_TRUE(std::equal(kHostMac.begin(), kHostMac.end(), direct.outputs[0].bytes.begin()));
  EXPECT_EQ(icmp6_sum(direct.outputs[0].bytes), 0);
}

TEST_F(Neighbour6Test, ProbesForDuplicatesAreAnsweredToAll) {
  const Outcome outcome = module_->run({make({.src = "::", .options = {}})});
  ASSERT_EQ(outcome.outputs.size(), 1U);
  const Bytes& frame = outcome.outputs[0].bytes;
  EXPECT_EQ(net::load_address6(&frame[38]), ip6("ff02::1"));
  EXPECT_EQ(frame[0], 0x33);
  EXPECT_EQ(frame[58], 0xa0);
  EXPECT_EQ(icmp6_sum(frame), 0);
  EXPECT_EQ(fate(make({.src = "::"})), "nd_malformed");  // must not carry a MAC option
  EXPECT_EQ(fate(make({.src = "::", .dst = "2001:db8:a::1", .options = {}})), "nd_malformed");
}

TEST_F(Neighbour6Test, BelievesNoBrokenMessage) {
  EXPECT_EQ(fate(make({.hop_limit = 254})), "nd_malformed");
  EXPECT_EQ(fate(make({.code = 1})), "nd_malformed");
  EXPECT_EQ(fate(make({.target = "ff02::1"})), "nd_malformed");
  EXPECT_EQ(fate(make({.options = {1, 0, 0, 0, 0, 0, 0, 0}})), "nd_malformed");
  EXPECT_EQ(fate(make({.options = {1, 2, 0, 0, 0, 0, 0, 0}})), "nd_malformed");
  EXPECT_EQ(fate(make({.options = {1, 1, 2}})), "nd_malformed");
  EXPECT_EQ(fate(make({.options = mac_option(1, {})})), "nd_malformed");
  EXPECT_EQ(fate(make({.options = mac_option(1, {3, 0, 0, 0, 0, 1})})), "nd_malformed");
  Bytes wrong = make({});
  wrong[60] ^= 1;
  EXPECT_EQ(fate(wrong), "nd_malformed");
  Bytes cut = make({});
  cut.pop_back();
  EXPECT_EQ(fate(cut), "nd_malformed");
  EXPECT_EQ(fate(make_icmp6({.ip_dst = "ff02::1", .hop_limit = 255}, {135, 0, 0, 0, 0, 0, 0, 0})),
            "nd_malformed");
  Message group = advert("2001:db8:a::99", kHostMac, 0x40);
  group.dst = "ff02::1";
  EXPECT_EQ(fate(make(group)), "nd_malformed");
  module_->meta().in_interface = kNoInterface;
  EXPECT_EQ(fate(make({})), "no_interface");
}

TEST_F(Neighbour6Test, WhoClaimsOurAddressIsAConflict) {
  EXPECT_EQ(fate(make(advert("2001:db8:a::1", kHostMac, 0x20))), "nd_conflict");
  EXPECT_EQ(fate(make(advert("2001:db8:a::1", kLanMac, 0x20))), "nd_done");
  EXPECT_EQ(fate(make({.src = "2001:db8:a::1"})), "nd_conflict");
}

TEST_F(Neighbour6Test, AdvertisementsChangeAMacOnlyWithTheOverrideFlag) {
  const net::Mac other{2, 0, 0, 0, 0, 0x77};
  const auto mac_in_use = [&] {
    const Bytes frame = send("2001:db8:a::99").at(0).at(0);
    return net::format_mac({frame[0], frame[1], frame[2], frame[3], frame[4], frame[5]});
  };
  fate(make({}));  // learns the neighbour
  fate(make(advert("2001:db8:a::99", other, 0x40)));
  EXPECT_EQ(mac_in_use(), net::format_mac(kHostMac));
  fate(make(advert("2001:db8:a::99", other, 0x20)));
  EXPECT_EQ(mac_in_use(), net::format_mac(other));
  EXPECT_EQ(fate(make(advert("2001:db8:a::55", other, 0x60))), "nd_done");  // unsolicited
  EXPECT_EQ(send("2001:db8:a::55").kept_pkts, 1U);
}

TEST_F(Neighbour6Test, GatewaysFixedMacsAndTheLinkOfArrival) {
  const Outcome gateway = send("2a00::1", 1);
  ASSERT_EQ(gateway.emitted.size(), 1U);
  EXPECT_EQ(gateway.emitted[0].gate, 1U);
  EXPECT_EQ(net::load_address6(&gateway.emitted[0].bytes[62]), ip6("fe80::5"));
  EXPECT_EQ(net::load_address6(&gateway.emitted[0].bytes[22]), ip6("fe80::ff:fe00:b"));
  EXPECT_EQ(send("2a00::1", 2).at(0).at(0)[1], 9);
  EXPECT_EQ(send("2a00::1", 7).dropped_for("no_interface"), 1U);
  module_->meta().next_hop = 3;
  const Outcome link =
      module_->run({make_frame6({.ip_src = "fe80::ff:fe00:a", .ip_dst = "fe80::99"})});
  ASSERT_EQ(link.emitted.size(), 1U);
  EXPECT_EQ(link.emitted[0].gate, 0U);
}

TEST_F(Neighbour6Test, DropsWhatCannotGo) {
  EXPECT_EQ(fate(Bytes(53)), "too_short");
  EXPECT_EQ(fate(make_frame6({.ip_dst = "2001:db8:a::9", .payload_bytes = 1461})), "mtu_exceeded");
  EXPECT_EQ(fate(make_frame6({.ip_dst = "2001:db8:a::9", .payload_bytes = 1460})), "held");
  EXPECT_EQ(fate(make_frame6({.ip_dst = "ff0e::1"})), "neighbour_unreachable");
  module_->meta().next_hop = 1;
  EXPECT_EQ(fate(make_frame6({.ip_src = "fe80::9", .ip_dst = "2a00::1"})), "beyond_scope");
  module_->meta().next_hop = 3;
  EXPECT_EQ(fate(make_frame6({.ip_src = "fe80::9", .ip_dst = "2001:db8:a::9"})), "beyond_scope");
  EXPECT_EQ(fate(make_frame6({.ip_src = "2001:db8:a::9", .ip_dst = "fe80::7"})), "beyond_scope");
  module_->meta().next_hop = 0;
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(send("2001:db8:a::77").kept_pkts, 1U);
  EXPECT_EQ(send("2001:db8:a::77").dropped_for("neighbour_hold_full"), 1U);
  make_module({{"max_neighbours", 4}});
  EXPECT_EQ(send("2001:db8:a::77").kept_pkts, 1U);
  EXPECT_EQ(send("2001:db8:a::78").dropped_for("neighbour_table_full"), 1U);
}

TEST_F(Neighbour6Test, SilentNeighboursAreGivenUpAndOldOnesAskedAgain) {
  uint64_t now = 10 * kSecond;
  const auto tick = [&](uint64_t seconds) {
    Outcome all;
    for (uint64_t i = 0; i < seconds * 10; ++i) {
      module_->set_now_ns(now += kSecond / 10);
      for (uint32_t k = 0; k < 12; ++k) {
        Outcome one = module_->housekeep();
        for (auto& output : one.emitted) all.emitted.push_back(std::move(output));
        for (auto& dropped : one.drops) all.drops.push_back(std::move(dropped));
      }
    }
    return all;
  };
  module_->set_now_ns(now);
  send("2001:db8:a::42");
  const Outcome silent = tick(5);
  EXPECT_EQ(silent.emitted.size(), 2U);  // three solicitations in all
  EXPECT_EQ(silent.dropped_for("neighbour_unreachable"), 1U);
  module_->run({make({})});
  send("2001:db8:a::99");
  const Outcome probed = tick(31);
  ASSERT_GE(probed.emitted.size(), 1U);
  EXPECT_EQ(net::load_address6(&probed.emitted[0].bytes[38]), ip6("2001:db8:a::99"));  // unicast
  EXPECT_EQ(probed.emitted[0].bytes[5], 0x99);
  EXPECT_EQ(module_->leaked_pkts(), 0U);
}

TEST_F(Neighbour6Test, StaticEntriesComeAndGoLive) {
  make_module({{"neighbours", List{Dict{{"interface", "lan"},
                                        {"address", "2001:db8:a::50"},
                                        {"mac", "02:00:00:00:00:50"}}}}});
  module_->housekeep();
  EXPECT_EQ(send("2001:db8:a::50").at(0).at(0)[5], 0x50);
  module_->command(
      "add",
      Dict{{"interface", "lan"}, {"address", "2001:db8:a::51"}, {"mac", "02:00:00:00:00:51"}});
  module_->housekeep();
  EXPECT_EQ(send("2001:db8:a::51").at(0).at(0)[5], 0x51);
  EXPECT_EQ(fate(make(advert("2001:db8:a::51", kHostMac, 0x60))), "nd_done");
  EXPECT_EQ(send("2001:db8:a::51").at(0).at(0)[5], 0x51);
  const Value listed = module_->command("list");
  EXPECT_EQ(listed["neighbours"].as_list().size(), 2U);
  module_->command("delete", Dict{{"interface", "lan"}, {"address", "2001:db8:a::50"}});
  module_->housekeep();
  EXPECT_EQ(send("2001:db8:a::50").kept_pkts, 1U);
  EXPECT_EQ(module_->module().saved_params().at("neighbours").as_list().size(), 1U);
  EXPECT_THROW(module_->command("add", Dict{{"interface", "lan"}, {"address", "10.0.0.1"}}),
               ConfigError);
}

TEST_F(Neighbour6Test, AnnouncesItsAddressesAtTheStart) {
  make_module({{"announce", true}});
  const Outcome outcome = module_->housekeep();
  ASSERT_EQ(outcome.emitted.size(), 4U);
  for (const Output& one : outcome.emitted) {
    EXPECT_EQ(one.bytes[54], 136);
    EXPECT_EQ(one.bytes[58], 0xa0);
    EXPECT_EQ(icmp6_sum(one.bytes), 0);
  }
  EXPECT_TRUE(module_->housekeep().emitted.empty());
}

Bytes router_solicitation() {
  Bytes message(8);
  message[0] = 133;
  const Bytes option = mac_option(1, kHostMac);
  message.insert(message.end(), option.begin(), option.end());
  return make_icmp6({.ip_src = "fe80::99", .ip_dst = "ff02::2", .hop_limit = 255}, message);
}

TEST_F(Neighbour6Test, AdvertisesPrefixesAtIntervalsAndWhenAsked) {
  make_module({{"advertise", List{Dict{{"interface", "lan"},
                                       {"prefix", "2001:db8:a::/64"},
                                       {"dns", "2001:db8:a::1"}}}}});
  uint64_t now = 100 * kSecond;
  module_->set_now_ns(now);
  const Outcome first = module_->housekeep();
  ASSERT_EQ(first.emitted.size(), 1U);
  const Bytes& frame = first.emitted[0].bytes;
  EXPECT_EQ(first.emitted[0].gate, 0U);
  EXPECT_EQ(net::format_mac({frame[0], frame[1], frame[2], frame[3], frame[4], frame[5]}),
            "33:33:00:00:00:01");
  EXPECT_EQ(net::load_address6(&frame[22]), ip6("fe80::ff:fe00:a"));
  EXPECT_EQ(frame[21], 255);
  EXPECT_EQ(frame[54], 134);
  EXPECT_EQ(net::load16(&frame[60]), 1800);
  const uint8_t* prefix = &frame[54 + 16 + 8 + 8];
  EXPECT_EQ(prefix[0], 3);
  EXPECT_EQ(prefix[2], 64);
  EXPECT_EQ(prefix[3], 0xc0);
  EXPECT_EQ(net::load_address6(prefix + 16), ip6("2001:db8:a::"));
  EXPECT_EQ(prefix[32], 25);
  EXPECT_EQ(icmp6_sum(frame), 0);
  // Many solicitations at once: one advertisement, three seconds after the last.
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(fate(router_solicitation()), "nd_done");
  uint32_t n = 0;
  for (uint32_t i = 0; i < 29; ++i) {
    module_->set_now_ns(now += kSecond / 10);
    n += static_cast<uint32_t>(module_->housekeep().emitted.size());
  }
  EXPECT_EQ(n, 0U);
  for (uint32_t i = 0; i < 10; ++i) {
    module_->set_now_ns(now += kSecond / 10);
    n += static_cast<uint32_t>(module_->housekeep().emitted.size());
  }
  EXPECT_EQ(n, 1U);
  for (uint32_t i = 0; i < 1000; ++i) {
    module_->set_now_ns(now += kSecond);
    n += static_cast<uint32_t>(module_->housekeep().emitted.size());
  }
  EXPECT_GE(n, 1U + 5);
  EXPECT_LE(n, 1U + 18);
}

TEST_F(Neighbour6Test, BadAdvertisementsAreRefused) {
  const auto mistake = [&](Dict entry) -> std::string {
    try {
      make_module({{"advertise", List{std::move(entry)}}});
    } catch (const ConfigError& error) {
      return error.line();
    }
    return "none";
  };
  EXPECT_NE(mistake({{"interface", "wlan"}, {"prefix", "2001:db8::/64"}}).find("advertise[0]"),
            std::string::npos);
  EXPECT_NE(mistake({{"interface", "lan"}, {"prefix", "2001:db8::1/64"}}).find("prefix"),
            std::string::npos);
  EXPECT_NE(mistake({{"interface", "lan"}, {"prefx", "2001:db8::/64"}}).find("prefx"),
            std::string::npos);
  EXPECT_NE(mistake({{"interface", "lan"}, {"valid_lifetime_s", 5}, {"preferred_lifetime_s", 9}})
                .find("longer"),
            std::string::npos);
}

TEST_F(Neighbour6Test, GarbageIsNeverReadBeyondItsEnd) {
  Rng rng(17);
  const Bytes good[] = {make({}), make(advert("2001:db8:a::99", kHostMac, 0x60)),
                        router_solicitation()};
  for (uint32_t round = 0; round < 3000; ++round) {
    Bytes frame = good[rng.below(3)];
    if (rng.below(2) == 0) frame.resize(rng.below(static_cast<uint32_t>(frame.size())) + 1);
    for (uint32_t k = 0; k < 3; ++k)
      frame[rng.below(static_cast<uint32_t>(frame.size()))] = static_cast<uint8_t>(rng.next());
    module_->run({frame});
    if (round % 16 == 0) module_->housekeep();
  }
  EXPECT_EQ(module_->leaked_pkts(), 0U);
}

}  // namespace neighbour6_test
}  // namespace batchplane
