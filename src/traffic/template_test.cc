// SPDX-License-Identifier: BSD-3-Clause
// template_test.cc - frames match their description and take turns in proportion to weights.
#include "traffic/template.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "traffic/traffic_test_util.h"

namespace batchplane::traffic {
namespace {

const std::vector<ParamSpec>& params() {
  static const std::vector<ParamSpec> kParams = with_traffic_params({});
  return kParams;
}

std::vector<FlowSpec> flows_of(const Dict& given) {
  return parse_flows(make_args(params(), given));
}

TEST(Template, SmallestFrameHasSixtyBytesAndRightChecksum) {
  const auto flows = flows_of({});
  ASSERT_EQ(flows.size(), 1U);
  const auto frame = build_frame(flows[0], 64);
  ASSERT_EQ(frame.size(), 60U);
  EXPECT_EQ(net::load16(frame.data() + 12), net::kTypeIpv4);
  const uint8_t* ip = frame.data() + net::kEthBytes;
  EXPECT_EQ(net::load16(ip + net::kIpTotalLength), 46);
  EXPECT_EQ(net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)), 0);
  EXPECT_EQ(net::load16(ip + 20 + 4), 26);  // UDP length
}

TEST(Template, TransportChecksumsHold) {
  for (const char* protocol : {"udp", "tcp"}) {
    for (const int size : {64, 65, 1518}) {
      const auto flows =
          flows_of({{"flows", List{Dict{{"protocol", protocol}, {"l4_checksum", true}}}}});
      const auto frame = build_frame(flows[0], static_cast<uint32_t>(size));
      const uint8_t* ip = frame.data() + net::kEthBytes;
      const uint32_t l4_bytes = net::load16(ip + net::kIpTotalLength) - net::kIpv4Bytes;
      uint8_t pseudo[12] = {};
      std::copy(ip + net::kIpSrc, ip + net::kIpSrc + 8, pseudo);
      pseudo[9] = ip[net::kIpProto];
      net::store16(pseudo + 10, static_cast<uint16_t>(l4_bytes));
      const uint32_t sum = net::checksum_add(ip + 20, l4_bytes, net::checksum_add(pseudo, 12));
      EXPECT_EQ(net::checksum_finish(sum), 0) << protocol << " " << size;
    }
  }
}

TEST(Template, VlanTagStandsBeforeTheType) {
  const auto flows = flows_of({{"flows", List{Dict{{"vlan", 42}}}}});
  const auto frame = build_frame(flows[0], 68);
  ASSERT_EQ(frame.size(), 64U);
  EXPECT_EQ(net::load16(frame.data() + 12), net::kTypeVlan);
  EXPECT_EQ(net::load16(frame.data() + 14), 42);
  EXPECT_EQ(net::load16(frame.data() + 16), net::kTypeIpv4);
  EXPECT_EQ(net::load16(frame.data() + 18 + net::kIpTotalLength), 46);
}

TEST(Template, CountStepsThroughAddresses) {
  const auto flows = flows_of(
      {{"flows",
        List{Dict{
            {"count", 3}, {"dst_ip", "10.1.0.1"}, {"dst_ip_step", 256}, {"src_port_step", 1}}}}});
  ASSERT_EQ(flows.size(), 3U);
  EXPECT_EQ(net::format_ipv4(flows[2].dst_ip), "10.1.2.1");
  EXPECT_EQ(flows[2].src_port, 1026);
  EXPECT_EQ(flows[2].name, "flow 2");
}

TEST(Template, RawBytesAreTakenAsTheyAre) {
  const auto flows =
      flows_of({{"flows", List{Dict{{"raw_hex", "ff:ff:ff:ff:ff:ff 020000000001 0806 abcd"}}}}});
  TemplateSet set(flows, Order::kRoundRobin, 1);
  set.each_next(1, [](uint32_t, const TemplateSet::Frame& frame) {
    EXPECT_EQ(frame.len_bytes, 16U);
    EXPECT_EQ(net::load16(frame.bytes + 14), 0xabcd);
  });
}

TEST(Template, RoundRobinIsInTurnAndWeighted) {
  auto flows = flows_of({{"flows", List{Dict{{"count", 4}}}}});
  TemplateSet equal(flows, Order::kRoundRobin, 1);
  std::vector<uint32_t> turns;
  equal.each_next(8,
                  [&](uint32_t, const TemplateSet::Frame& frame) { turns.push_back(frame.flow); });
  EXPECT_EQ(turns, (std::vector<uint32_t>{0, 1, 2, 3, 0, 1, 2, 3}));

  flows[1].weight = 2.5;
  TemplateSet weighted(flows, Order::kRoundRobin, 1);
  std::map<uint32_t, int> counts;
  weighted.each_next(1100,
                     [&](uint32_t, const TemplateSet::Frame& frame) { ++counts[frame.flow]; });
  EXPECT_EQ(counts[0], 200);
  EXPECT_EQ(counts[1], 500);
}

TEST(Template, RandomOrderKeepsProportionsAndItsSeed) {
  auto flows = flows_of({{"flows", List{Dict{{"count", 3}}}}});
  flows[0].weight = 6;
  flows[1].weight = 0;
  flows[2].weight = 2;
  TemplateSet a(flows, Order::kRandom, 4);
  TemplateSet b(flows, Order::kRandom, 4);
  std::vector<uint32_t> first;
  std::vector<uint32_t> second;
  a.each_next(80000, [&](uint32_t, const TemplateSet::Frame& f) { first.push_back(f.flow); });
  b.each_next(80000, [&](uint32_t, const TemplateSet::Frame& f) { second.push_back(f.flow); });
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::ranges::count(first, 1U), 0);
  EXPECT_NEAR(std::ranges::count(first, 0U), 60000, 600);
}

TEST(Template, ImixHasItsShares) {
  const auto flows = flows_of({{"imix", true}, {"flows", List{Dict{{"count", 2}}}}});
  TemplateSet set(flows, Order::kRoundRobin, 1);
  std::map<uint32_t, int> sizes;
  set.each_next(24, [&](uint32_t, const TemplateSet::Frame& frame) { ++sizes[frame.len_bytes]; });
  EXPECT_EQ(sizes, (std::map<uint32_t, int>{{60, 14}, {590, 8}, {1514, 2}}));
}

TEST(Template, CopiesWholeFramesOfAnySize) {
  for (uint32_t wire = 64; wire < 200; ++wire) {
    auto flows = flows_of({{"size_bytes", static_cast<int64_t>(wire)}});
    TemplateSet set(flows, Order::kRoundRobin, 1);
    const TemplateSet::Frame& frame = set.frames().front();
    std::vector<uint8_t> to(wire + 64, 0xee);
    copy_frame(to.data(), frame.bytes, frame.len_bytes);
    EXPECT_TRUE(std::equal(frame.bytes, frame.bytes + frame.len_bytes, to.begin())) << wire;
    EXPECT_EQ(to[(frame.len_bytes + 63) / 64 * 64], 0xee) << wire;
  }
}

TEST(Template, MistakesAreNamed) {
  EXPECT_NE(error_of([] {
              flows_of({{"flows", List{Dict{{"size_bytes", 40}}}}});
            }).find("40 bytes"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              flows_of({{"flows", List{Dict{{"wieght", 1}}}}});
            }).find("did you mean 'weight'"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              flows_of({{"flows", List{Dict{{"raw_hex", "zz"}}}}});
            }).find("hexadecimal"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              flows_of({{"flows", List{Dict{{"weight", 0}}}}});
            }).find("weight 0"),
            std::string::npos);
}

}  // namespace
}  // namespace batchplane::traffic
