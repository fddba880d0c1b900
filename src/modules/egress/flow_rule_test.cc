// SPDX-License-Identifier: BSD-3-Clause
// flow_rule_test.cc - the flow of a packet under each rule, and the notation of flow numbers.
#include "modules/egress/flow_rule.h"

#include <gtest/gtest.h>

#include <set>

#include "module_harness.h"
#include "modules/egress/egress_params.h"
#include "modules/egress/flow_number.h"

namespace batchplane {
namespace flow_rule_test {

class FlowRuleTest : public testing::Test {
 protected:
  uint32_t flow_of(const Dict& params, const Bytes& frame, uint32_t mark = 0) {
    std::vector<ConfigError> errors;
    const FlowRule rule(Args(egress_params(), params, "link", errors));
    Packet* pkt = harness_.make_packet(frame);
    if (mark != 0) pkt->set_mark(mark);
    const uint32_t flow = rule.number_of(*pkt);
    PacketPool::free_bulk(&pkt, 1);
    return flow;
  }

  ModuleHarness harness_{"null", {}};
};

Bytes tagged(const Bytes& frame, uint16_t vid, uint16_t type = 0x8100) {
  Bytes all = frame;
  const Bytes tag{static_cast<uint8_t>(type >> 8), static_cast<uint8_t>(type),
                  static_cast<uint8_t>(0xa0 | vid >> 8), static_cast<uint8_t>(vid)};
  all.insert(all.begin() + 12, tag.begin(), tag.end());
  return all;
}
Bytes twice_tagged(uint16_t outer, uint16_t inner) {
  return tagged(tagged(make_frame(), inner), outer, 0x88a8);
}

// A UDP packet in IPv4 with a GTP-U header: a PDU session container with this QFI, or none for 64.
Bytes gtpu_frame(uint8_t qfi, uint16_t port = 2152) {
  const bool has_qfi = qfi < 64;
  Bytes message{static_cast<uint8_t>(has_qfi ? 0x34 : 0x30), 255, 0, 0, 0, 0, 0, 7};
  if (has_qfi) {
    const Bytes rest{0, 0, 0, 0x85, 1, 0, qfi, 0};
    message.insert(message.end(), rest.begin(), rest.end());
  }
  message.resize(message.size() + 20);
  net::store16(&message[2], static_cast<uint16_t>(message.size() - 8));
  Bytes frame = make_frame();
  frame.resize(net::kEthBytes + 20 + 8);
  frame[net::kEthBytes + 9] = 17;
  net::store16(&frame[net::kEthBytes + 2], static_cast<uint16_t>(28 + message.size()));
  net::store16(&frame[net::kEthBytes + 22], port);
  net::store16(&frame[net::kEthBytes + 24], static_cast<uint16_t>(8 + message.size()));
  frame.insert(frame.end(), message.begin(), message.end());
  mend_ipv4_checksum(frame);
  return frame;
}

Bytes from_port(uint16_t port) {
  Bytes frame = make_frame();
  net::store16(&frame[net::kEthBytes + 20], port);
  return frame;
}

TEST_F(FlowRuleTest, OuterVlan) {
  const Dict by_vlan{{"flow_by", "vlan"}};
  EXPECT_EQ(flow_of(by_vlan, make_frame()), 0U);
  EXPECT_EQ(flow_of(by_vlan, tagged(make_frame(), 4094)), 4094U);
  EXPECT_EQ(flow_of(by_vlan, twice_tagged(100, 7)), 100U);
  EXPECT_EQ(flow_of(by_vlan, Bytes(14, 0)), 0U);
}

// A tag cut off by the end of the frame is not read.
TEST_F(FlowRuleTest, TagsThatAreCutShort) {
  Bytes frame = twice_tagged(100, 7);
  for (uint32_t len = 0; len < 22; ++len) {
    const Bytes cut(frame.begin(), frame.begin() + len);
    EXPECT_EQ(flow_of({{"flow_by", "vlan"}}, cut), 0U) << len;
    EXPECT_EQ(flow_of({{"flow_by", "vlan"}, {"inner_vlans", 256}}, cut), 0U) << len;
  }
}

TEST_F(FlowRuleTest, PairsOfVlans) {
  const Dict by_pair{{"flow_by", "vlan"}, {"inner_vlans", 256}};
  EXPECT_EQ(flow_of(by_pair, twice_tagged(100, 7)), 100U * 256 + 7);
  EXPECT_EQ(flow_of(by_pair, twice_tagged(100, 255)), 100U * 256 + 255);
  EXPECT_EQ(flow_of(by_pair, twice_tagged(100, 256)), 0U) << "no other pair's number";
  EXPECT_EQ(flow_of(by_pair, tagged(make_frame(), 100)), 100U * 256);
}

TEST_F(FlowRuleTest, QosFlowOfTheMessageAround) {
  const Dict by_qfi{{"flow_by", "qfi"}};
  EXPECT_EQ(flow_of(by_qfi, gtpu_frame(9)), 9U);
  EXPECT_EQ(flow_of(by_qfi, tagged(gtpu_frame(63), 5)), 63U);
  EXPECT_EQ(flow_of(by_qfi, gtpu_frame(64)), 0U);
  EXPECT_EQ(flow_of(by_qfi, gtpu_frame(9, 2153)), 0U);
  EXPECT_EQ(flow_of(by_qfi, make_frame()), 0U);
  // A packet truncated anywhere belongs to flow 0.
  const Bytes whole = gtpu_frame(9);
  for (size_t bytes = net::kEthBytes; bytes < whole.size(); ++bytes) {
    EXPECT_EQ(flow_of(by_qfi, Bytes(whole.begin(), whole.begin() + static_cast<int64_t>(bytes))),
              0U);
  }
}

TEST_F(FlowRuleTest, ConnectionsGoIntoAFewFlows) {
  const Dict by_hash{{"flow_by", "hash"}, {"hash_flows", 8}};
  std::set<uint32_t> seen;
  for (uint16_t port = 1; port < 200; ++port) {
    const uint32_t flow = flow_of(by_hash, from_port(port));
    EXPECT_LT(flow, 8U);
    EXPECT_EQ(flow_of(by_hash, tagged(from_port(port), 3)), flow) << "whatever tag it has";
    seen.insert(flow);
  }
  EXPECT_EQ(seen.size(), 8U);
}

TEST_F(FlowRuleTest, RefusesWhatCannotBe) {
  EXPECT_THROW(flow_of({{"flow_by", "hash"}, {"hash_flows", 2000}}, make_frame()), ConfigError);
  EXPECT_THROW(flow_of({{"flow_by", "mark"}, {"inner_vlans", 5}}, make_frame()), ConfigError);
  EXPECT_EQ(flow_of({}, make_frame(), 77), 77U);
}

TEST(FlowNumbers, AreNumbersOrPairs) {
  const FlowNumbers pairs{.max_flows = 30'000, .inner_vlans = 256};
  EXPECT_EQ(pairs.parse("100/7", "here"), 25'607U);
  EXPECT_EQ(pairs.parse("12", "here"), 12U);
  EXPECT_EQ(pairs.parse(Value(29'999), "here"), 29'999U);
  for (const char* text : {"100/256", "200/0", "4096/1", "100/", "/7", "100/7/1", "-1", "", "a"}) {
    EXPECT_THROW((void)pairs.parse(text, "here"), ConfigError) << text;
  }
  EXPECT_THROW((void)pairs.parse(Value(30'000), "here"), ConfigError);
  EXPECT_THROW((void)pairs.parse(Value(100.7), "here"), ConfigError) << "a number with a fraction";
  EXPECT_THROW((void)(FlowNumbers{.max_flows = 30'000}.parse("100/7", "here")), ConfigError);
}

}  // namespace flow_rule_test
}  // namespace batchplane
