// SPDX-License-Identifier: BSD-3-Clause
// load_balancer_test.cc - the service of a packet, the backend of its flow, and packets that get no
// backend.
#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "module_harness.h"
#include "modules/headers/flow_key.h"

namespace batchplane {
namespace load_balancer_test {

constexpr uint32_t kVip = 0xc000020a;  // 192.0.2.10

Dict backend(const std::string& name, int gate) { return {{"name", name}, {"gate", gate}}; }
Dict service(const std::string& name, const std::string& address, const std::string& proto,
             int port, List backends) {
  return {{"name", name},
          {"address", address},
          {"proto", proto},
          {"port", port},
          {"backends", std::move(backends)}};
}
Dict with(List services) { return {{"services", std::move(services)}, {"table_slots", 1009}}; }
// b0 at gate 0, b1 at gate 1, and so on.
List numbered(int n) {
  List backends;
  for (int i = 0; i < n; ++i)
    backends.push_back(backend(std::string("b").append(std::to_string(i)), i));
  return backends;
}
Dict web(int n_backends) {
  return with({service("web", "192.0.2.10", "tcp", 80, numbered(n_backends))});
}

Bytes to_vip(uint16_t port_src, uint16_t port_dst = 80, uint8_t proto = net::kProtoTcp,
             uint32_t ip_dst = kVip) {
  return make_frame({.ip_dst = ip_dst, .port_src = port_src, .port_dst = port_dst, .proto = proto});
}

Bytes fragment_of(Bytes frame, uint16_t bits) {
  net::store16(&frame[net::kEthBytes + net::kIpFragment], bits);
  mend_ipv4_checksum(frame);
  return frame;
}

Bytes ipv6_frame(const std::vector<uint8_t>& extensions, uint8_t first_proto, uint16_t port_src,
                 uint16_t port_dst, uint8_t last_of_vip = 0x10) {
  Bytes frame(net::kEthBytes + 40 + extensions.size() + 20);
  net::store16(&frame[12], net::kTypeIpv6);
  uint8_t* ip = &frame[net::kEthBytes];
  ip[0] = 0x60;
  net::store16(ip + 4, static_cast<uint16_t>(extensions.size() + 20));
  ip[6] = first_proto;
  ip[7] = 64;
  ip[8] = 0xfd;
  ip[23] = 1;
  ip[24] = 0x20;
  ip[25] = 0x01;
  ip[26] = 0x0d;
  ip[27] = 0xb8;
  ip[39] = last_of_vip;
  std::ranges::copy(extensions, ip + 40);
  net::store16(ip + 40 + extensions.size(), port_src);
  net::store16(ip + 42 + extensions.size(), port_dst);
  return frame;
}

TEST(LoadBalancer, FlowsStayAndSpreadEvenly) {
  ModuleHarness harness("load_balancer", web(5));
  EXPECT_EQ(harness.n_gates(), 5U);
  std::map<uint32_t, uint32_t> n_flows;
  for (uint16_t chunk = 0; chunk < 40; ++chunk) {
    std::vector<Bytes> frames;
    for (uint16_t i = 0; i < 250; ++i)
      frames.push_back(to_vip(static_cast<uint16_t>(chunk * 250 + i)));
    const std::vector<uint32_t> gates = harness.run(frames).gates();
    ASSERT_EQ(gates.size(), frames.size());
    EXPECT_EQ(harness.run(frames).gates(), gates);
    for (const uint32_t gate : gates) ++n_flows[gate];
  }
  ASSERT_EQ(n_flows.size(), 5U);
  for (const auto& [gate, n] : n_flows) EXPECT_NEAR(n, 2000, 160) << gate;
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

TEST(LoadBalancer, TheMostExactServiceHasThePacket) {
  ModuleHarness harness("load_balancer",
                        with({service("web", "192.0.2.10", "tcp", 80, {backend("a", 1)}),
                              service("tcp", "192.0.2.10", "tcp", 0, {backend("a", 2)}),
                              service("all", "192.0.2.10", "any", 0, {backend("a", 3)}),
                              service("dns", "192.0.2.11", "udp", 53, {backend("a", 4)})}));
  const Outcome outcome = harness.run({
      to_vip(1000, 80),
      to_vip(1000, 81),
      to_vip(1000, 80, net::kProtoUdp),
      to_vip(1000, 0, net::kProtoIcmp),
      to_vip(1000, 53, net::kProtoUdp, kVip + 1),
      to_vip(1000, 53, net::kProtoTcp, kVip + 1),
      to_vip(1000, 80, net::kProtoTcp, kVip + 2),
  });
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 2, 3, 3, 4}));
  EXPECT_EQ(outcome.dropped_for("no_service"), 2U);
}

// Each of the three kinds of service alone and in pairs, on a batch of mixed packets.
TEST(LoadBalancer, AnyMixOfExactAndOpenServices) {
  const List all = {service("web", "192.0.2.10", "tcp", 80, {backend("a", 1)}),
                    service("tcp", "192.0.2.10", "tcp", 0, {backend("a", 2)}),
                    service("all", "192.0.2.10", "any", 0, {backend("a", 3)})};
  for (uint32_t mix = 0; mix < 8; ++mix) {
    List services;
    for (uint32_t i = 0; i < 3; ++i) {
      if ((mix >> i & 1) != 0) services.push_back(all[i]);
    }
    Dict params = with(services);
    params["other_gate"] = 0;
    ModuleHarness harness("load_balancer", params);
    const auto first_of = [&](std::initializer_list<uint32_t> fits) {
      for (const uint32_t i : fits) {
        if ((mix >> (i - 1) & 1) != 0) return i;
      }
      return 0U;
    };
    const Outcome outcome =
        harness.run({to_vip(7, 80), to_vip(7, 99), to_vip(7, 80, net::kProtoUdp),
                     to_vip(7, 80, net::kProtoTcp, kVip + 9)});
    EXPECT_EQ(outcome.gates(),
              (std::vector<uint32_t>{first_of({1, 2, 3}), first_of({2, 3}), first_of({3}), 0}))
        << "mix " << mix;
  }
}

TEST(LoadBalancer, OtherPacketsTakeTheirGate) {
  Dict params = web(2);
  params["other_gate"] = 5;
  ModuleHarness harness("load_balancer", params);
  EXPECT_EQ(harness.n_gates(), 6U);
  Bytes arp = make_frame();
  net::store16(&arp[12], net::kTypeArp);
  const Outcome outcome = harness.run({arp, to_vip(1, 81), Bytes(5), ipv6_frame({}, 6, 1, 80)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{5, 5, 5}));
  EXPECT_EQ(outcome.dropped_for("too_short"), 1U);
}

TEST(LoadBalancer, AServiceWithoutBackendsDropsWithItsReason) {
  Dict params = with({service("web", "192.0.2.10", "tcp", 80, {})});
  params["other_gate"] = 1;
  ModuleHarness harness("load_balancer", params);
  const Outcome outcome = harness.run({to_vip(1), to_vip(2), to_vip(3, 81)});
  EXPECT_EQ(outcome.dropped_for("no_backend"), 2U);
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1}));
}

TEST(LoadBalancer, PacketsThatEndEarlyOrClaimTooMuch) {
  ModuleHarness harness("load_balancer", web(1));
  std::vector<Bytes> frames;
  for (uint32_t len = 0; len < 60; ++len) {
    frames.push_back(to_vip(1));
    frames.back().resize(len);
  }
  EXPECT_EQ(harness.run(frames).dropped_for("too_short"), 60U);
  const auto with_total = [](uint16_t total) {
    Bytes frame = to_vip(1);
    net::store16(&frame[net::kEthBytes + net::kIpTotalLength], total);
    return frame;
  };
  // Ports in the padding do not count.
  EXPECT_EQ(
      harness.run({with_total(20), with_total(23), with_total(24), with_total(46), with_total(47)})
          .dropped_for("too_short"),
      3U);
  Bytes no_header = to_vip(1);
  no_header[net::kEthBytes] = 0x44;
  Bytes long_header = to_vip(1);
  long_header[net::kEthBytes] = 0x4f;
  EXPECT_EQ(harness.run({no_header, long_header}).dropped_for("too_short"), 2U);
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

TEST(LoadBalancer, OptionsDoNotHideThePorts) {
  ModuleHarness harness("load_balancer", web(5));
  for (uint16_t port = 1; port < 60; ++port) {
    const Bytes options = make_frame({.ip_dst = kVip,
                                      .port_src = port,
                                      .port_dst = 80,
                                      .proto = net::kProtoTcp,
                                      .len_bytes = 90,
                                      .options_bytes = 40});
    const std::vector<uint32_t> gates = harness.run({to_vip(port), options}).gates();
    ASSERT_EQ(gates.size(), 2U);
    EXPECT_EQ(gates[0], gates[1]);
  }
}

TEST(LoadBalancer, FragmentsOfAPacketStayTogether) {
  const List backends = numbered(7);
  ModuleHarness open("load_balancer", with({service("all", "192.0.2.10", "udp", 0, backends)}));
  for (uint32_t host = 0; host < 40; ++host) {
    Bytes whole = make_frame({.ip_src = 0x0a000100 + host, .ip_dst = kVip});
    const std::vector<uint32_t> gates =
        open.run({fragment_of(whole, 0x2000), fragment_of(whole, 0x2005),
                  fragment_of(whole, 0x0009)})
            .gates();
    ASSERT_EQ(gates.size(), 3U);
    EXPECT_EQ(gates[0], gates[1]);
    EXPECT_EQ(gates[0], gates[2]);
  }
  ModuleHarness one_port("load_balancer",
                         with({service("dns", "192.0.2.10", "udp", 53, backends)}));
  const Bytes whole = to_vip(9, 53, net::kProtoUdp);
  const Outcome outcome = one_port.run(
      {fragment_of(whole, 0x2000), fragment_of(whole, 0x0009), fragment_of(whole, 0x4000)});
  EXPECT_EQ(outcome.outputs.size(), 2U);
  EXPECT_EQ(outcome.dropped_for("no_service"), 1U);
}

TEST(LoadBalancer, WritesTheBackendsMacAndTunnel) {
  Dict direct = backend("direct", 0);
  direct["mac"] = "02:aa:00:00:00:07";
  Dict tunnelled = backend("tunnelled", 1);
  tunnelled["tunnel_id"] = 5001;
  ModuleHarness harness("load_balancer",
                        with({service("web", "192.0.2.10", "tcp", 80, {direct}),
                              service("dns", "192.0.2.11", "udp", 53, {tunnelled}),
                              service("plain", "192.0.2.12", "any", 0, {backend("plain", 2)})}));
  harness.meta().tunnel_id = 42;
  const Outcome outcome =
      harness.run({to_vip(1), to_vip(1, 53, net::kProtoUdp, kVip + 1),
                   to_vip(1, 53, net::kProtoUdp, kVip + 2), to_vip(1, 1, 6, kVip + 3)});
  ASSERT_EQ(outcome.outputs.size(), 3U);
  Bytes expected = to_vip(1);
  const uint8_t mac[] = {2, 0xaa, 0, 0, 0, 7};
  std::ranges::copy(mac, expected.begin());
  EXPECT_EQ(outcome.outputs[0].bytes, expected);
  EXPECT_EQ(outcome.outputs[0].meta.tunnel_id, 42U);
  EXPECT_EQ(outcome.outputs[1].bytes, to_vip(1, 53, net::kProtoUdp, kVip + 1));
  EXPECT_EQ(outcome.outputs[1].meta.tunnel_id, 5001U);
  EXPECT_EQ(outcome.outputs[2].meta.tunnel_id, 42U);
  EXPECT_EQ(outcome.dropped_for("no_service"), 1U);
}

TEST(LoadBalancer, FindsTheHeaderBehindATag) {
  ModuleHarness harness("load_balancer", web(3));
  Bytes tagged = to_vip(77);
  const uint8_t tag[] = {0x81, 0x00, 0x00, 0x05};
  tagged.insert(tagged.begin() + 12, tag, tag + 4);
  const std::vector<uint32_t> plain = harness.run({to_vip(77)}).gates();
  EXPECT_EQ(harness.run({tagged}).dropped_for("no_service"), 1U);
  harness.meta().l3_offset_bytes = 18;
  EXPECT_EQ(harness.run({tagged}).gates(), plain);
}

TEST(LoadBalancer, Ipv6ServicesSeeThroughExtensionHeaders) {
  const List backends = numbered(5);
  Dict params = with({service("web6", "2001:db8::10", "tcp", 80, backends),
                      service("any6", "2001:db8::11", "any", 0, {backend("c", 6)})});
  ModuleHarness harness("load_balancer", params);
  const std::vector<uint8_t> hop_by_hop = {6, 0, 1, 4, 0, 0, 0, 0};
  const std::vector<uint8_t> two = {60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0};
  std::map<uint32_t, uint32_t> n_flows;
  for (uint16_t port = 0; port < 200; ++port) {
    const std::vector<uint32_t> gates =
        harness
            .run({ipv6_frame({}, 6, port, 80), ipv6_frame(hop_by_hop, 0, port, 80),
                  ipv6_frame(two, 0, port, 80)})
            .gates();
    ASSERT_EQ(gates.size(), 3U);
    EXPECT_EQ(gates[0], gates[1]);
    EXPECT_EQ(gates[0], gates[2]);
    ++n_flows[gates[0]];
  }
  EXPECT_EQ(n_flows.size(), 5U);
  const Outcome outcome =
      harness.run({ipv6_frame({}, 6, 1, 81), ipv6_frame({}, 58, 1, 80, 0x11), to_vip(1)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{6}));
  EXPECT_EQ(outcome.dropped_for("no_service"), 2U);
}

TEST(LoadBalancer, Ipv6FragmentsAndTruncation) {
  const List backends = numbered(5);
  ModuleHarness harness("load_balancer", with({service("u", "2001:db8::10", "udp", 0, backends)}));
  const std::vector<uint8_t> first = {17, 0, 0x00, 0x01, 0, 0, 0, 9};
  const std::vector<uint8_t> later = {17, 0, 0x05, 0xa8, 0, 0, 0, 9};
  const std::vector<uint8_t> atomic = {17, 0, 0x00, 0x00, 0, 0, 0, 9};
  for (uint16_t port = 0; port < 20; ++port) {
    const std::vector<uint32_t> gates =
        harness
            .run({ipv6_frame(first, 44, port, 53), ipv6_frame(later, 44, 99, 99),
                  ipv6_frame(atomic, 44, port, 53), ipv6_frame({}, 17, port, 53)})
            .gates();
    ASSERT_EQ(gates.size(), 4U);
    EXPECT_EQ(gates[0], gates[1]);
    EXPECT_EQ(gates[2], gates[3]);
  }
  const std::vector<uint8_t> long_options = {17, 200, 1, 4, 0, 0, 0, 0};
  EXPECT_EQ(harness.run({ipv6_frame(long_options, 60, 1, 53)}).dropped_for("too_short"), 1U);
  const Bytes whole = ipv6_frame(first, 44, 1, 53);
  std::vector<Bytes> cut;
  for (size_t len = 0; len < whole.size(); ++len)
    cut.emplace_back(whole.begin(), whole.begin() + static_cast<long>(len));
  EXPECT_EQ(harness.run(cut).dropped_for("too_short"), whole.size());
}

// hash_flow of IPv6 depends on the flow and the seed, not on the MACs.
TEST(LoadBalancer, FlowHashOfIpv6KeepsDirectionsAndSeedsApart) {
  ModuleHarness harness("null");
  const auto hash = [&](const Bytes& frame, uint64_t seed) {
    Packet* pkt = harness.make_packet(frame);
    const uint64_t found = hash_flow(*pkt, seed);
    harness.ctx().free(pkt);
    return found;
  };
  const Bytes one = ipv6_frame({}, 6, 1, 80);
  EXPECT_EQ(hash(one, 1), hash(one, 1));
  EXPECT_NE(hash(one, 1), hash(one, 2));
  EXPECT_NE(hash(one, 1), hash(ipv6_frame({}, 6, 2, 80), 1));
  EXPECT_NE(hash(one, 1), hash(ipv6_frame({}, 17, 1, 80), 1));
  EXPECT_NE(hash(one, 1), hash(ipv6_frame({}, 6, 1, 80, 0x11), 1));
  Bytes other_mac = one;
  other_mac[0] ^= 1;
  EXPECT_EQ(hash(one, 1), hash(other_mac, 1));
}

}  // namespace load_balancer_test
}  // namespace batchplane
