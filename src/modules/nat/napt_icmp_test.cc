// SPDX-License-Identifier: BSD-3-Clause
// napt_icmp_test.cc - ICMP queries and errors as RFC 5508 requires, hairpinning, fragments, faulty
// packets.
#include "napt_test_rig.h"

namespace batchplane {
namespace napt_icmp_test {

using namespace nattest;  // NOLINT: helpers of these tests

constexpr Ep kA{kHostA, 5000};
constexpr Ep kB{kHostB, 6000};
constexpr uint32_t kRouter = ip4(77, 1, 1, 1);

TEST(NaptIcmp, Rfc5508Req1QueriesAreMappedById) {
  NaptRig rig;
  EXPECT_EQ(rig.out(echo(kHostA, kServer.ip, 7)), (Ep{kExternal, 7}));
  const Ep other = rig.out(echo(kHostB, kServer.ip, 7));
  EXPECT_NE(other.port, 7);
  EXPECT_EQ(rig.send(echo(kServer.ip, kExternal, 7, 0)).dst(), (Ep{kHostA, 7}));
  EXPECT_EQ(rig.send(echo(kServer.ip, kExternal, other.port, 0)).dst(), (Ep{kHostB, 7}));
  EXPECT_EQ(rig.out(echo(kHostA, kOther.ip, 7)), (Ep{kExternal, 7}));
}

TEST(NaptIcmp, Rfc5508Req2QueriesLastSixtySeconds) {
  NaptRig rig;
  rig.out(echo(kHostA, kServer.ip, 7));
  rig.pass(59.9);
  EXPECT_EQ(rig.send(echo(kServer.ip, kExternal, 7, 0)).drop, "");
  rig.pass(61);
  EXPECT_EQ(rig.count("connections"), 0);
}

TEST(NaptIcmp, RepliesOpenNothing) {
  NaptRig rig;
  EXPECT_EQ(rig.send(echo(kHostA, kServer.ip, 7, 0)).drop, "no_mapping");
  EXPECT_EQ(rig.send(echo(kServer.ip, kExternal, 7, 0)).drop, "no_mapping");
}

TEST(NaptIcmp, Rfc5508Req4InboundErrorsAreTranslatedWithTheirQuote) {
  NaptRig rig;
  const Ep udp_end = rig.out(udp(kA, kServer));
  const Ep tcp_end = rig.out(tcp(kB, kServer, kSyn));
  const struct {
    Bytes quoted;
    Ep inside;
  } rows[] = {{udp_ip(udp_end, kServer), kA}, {tcp_ip(tcp_end, kServer, kSyn), kB}};
  for (const auto& row : rows) {
    for (const size_t bytes : {28U, 36U, 38U, 500U}) {
      for (const uint8_t type : {uint8_t{3}, uint8_t{11}, uint8_t{12}}) {
        const Sent sent = rig.send(icmp_error(kRouter, kExternal, row.quoted, bytes, type));
        EXPECT_EQ(sent.gate, 1U) << sent.drop;
        EXPECT_EQ(net::load32(ip_of(sent.bytes) + 12), kRouter);
        EXPECT_EQ(net::load32(ip_of(sent.bytes) + 16), row.inside.ip);
        EXPECT_EQ(src_of(quote_of(sent.bytes)), row.inside);
        EXPECT_EQ(dst_of(quote_of(sent.bytes)), kServer);
      }
    }
  }
}

TEST(NaptIcmp, Rfc5508Req4ErrorsAboutQueries) {
  NaptRig rig;
  rig.out(echo(kHostA, kServer.ip, 7));
  const Ep end = rig.out(echo(kHostB, kServer.ip, 7));
  const Sent sent =
      rig.send(icmp_error(kRouter, kExternal, echo_ip(kExternal, kServer.ip, end.port), 28));
  EXPECT_EQ(net::load32(ip_of(sent.bytes) + 16), kHostB);
  EXPECT_EQ(src_of(quote_of(sent.bytes)), (Ep{kHostB, 7}));
}

TEST(NaptIcmp, Rfc5508Req5OutboundErrorsHideInsideAddresses) {
  NaptRig rig;
  const Ep end = rig.out(udp(kA, kServer));
  const Bytes heard = udp_ip(kServer, kA);
  for (const uint32_t sender : {kHostA, ip4(10, 9, 9, 9)}) {
    const Sent sent = rig.send(icmp_error(sender, kServer.ip, heard, 28));
    EXPECT_EQ(sent.gate, 0U) << sent.drop;
    EXPECT_EQ(net::load32(ip_of(sent.bytes) + 12), kExternal);
    EXPECT_EQ(dst_of(quote_of(sent.bytes)), end);
  }
}

TEST(NaptIcmp, Rfc5508Req3ErrorsWithoutAConnectionAreDropped) {
  NaptRig rig;
  rig.out(udp(kA, kServer));
  EXPECT_EQ(rig.send(icmp_error(kRouter, kExternal, udp_ip({kExternal, 4}, kServer), 28)).drop,
            "no_mapping");
  EXPECT_EQ(rig.send(icmp_error(kHostA, kServer.ip, udp_ip(kServer, {kHostA, 4}), 28)).drop,
            "no_mapping");
  EXPECT_EQ(rig.send(icmp_error(kRouter, kExternal, udp_ip(kA, kServer), 10)).drop, "too_short");
}

TEST(NaptIcmp, Rfc5508Req6ErrorsNeitherRefreshNorEndAConnection) {
  NaptRig rig;
  const Ep end = rig.out(udp(kA, kServer));
  rig.pass(200);
  EXPECT_EQ(rig.send(icmp_error(kRouter, kExternal, udp_ip(end, kServer), 28)).drop, "");
  EXPECT_EQ(rig.count("connections"), 1);
  rig.pass(101);
  EXPECT_EQ(rig.count("connections"), 0);
}

TEST(NaptIcmp, OtherMessagesAreRefused) {
  NaptRig rig;
  const Bytes redirect = frame_of(ipv4({.src = kHostA, .dst = kServer.ip, .proto = 1},
                                       icmp_part(5, 0, 1, udp_ip(kA, kServer))));
  EXPECT_EQ(rig.send(redirect).drop, "nat_icmp");
}

TEST(NaptHairpin, Rfc4787Req9PacketsComeBackWithTheExternalSource) {
  NaptRig rig;
  const Ep a = rig.out(udp(kA, kServer));
  const Ep b = rig.out(udp(kB, kServer));
  const Sent there = rig.send(udp(kA, b));
  EXPECT_EQ(there.gate, 1U) << there.drop;
  EXPECT_EQ(there.src(), a);
  EXPECT_EQ(there.dst(), kB);
  const Sent back = rig.send(udp(kB, a));
  EXPECT_EQ(back.src(), b);
  EXPECT_EQ(back.dst(), kA);
  EXPECT_EQ(rig.send(udp(kA, b)).dst(), kB);
  EXPECT_EQ(rig.count("hairpinned_pkts"), 3);
  EXPECT_EQ(rig.send(udp(kA, {kExternal, 9})).drop, "no_mapping");
}

TEST(NaptHairpin, Rfc5382Req8TcpEstablishes) {
  NaptRig rig;
  const Ep b = rig.connect(kB, kServer);
  EXPECT_EQ(rig.send(tcp(kA, b, kSyn)).dst(), kB);
  const Ep a{kExternal, kA.port};
  EXPECT_EQ(rig.send(tcp(kB, a, kSyn | kAck)).dst(), kA);
  EXPECT_EQ(rig.send(tcp(kA, b, kAck)).dst(), kB);
  EXPECT_EQ(rig.in_state("tcp_open"), 3);
}

TEST(NaptHairpin, ForgedExternalSourcesFromOutsideAreDropped) {
  NaptRig rig;
  const Ep a = rig.out(udp(kA, kServer));
  const Ep b = rig.out(udp(kB, kServer));
  EXPECT_EQ(rig.send(udp(a, b)).drop, "nat_own_source");
  EXPECT_EQ(rig.send(udp(kA, b)).drop, "");
  EXPECT_EQ(rig.send(udp(a, b)).drop, "nat_own_source") << "a connection is there";
}

TEST(NaptHairpin, FilteringHoldsBetweenInsideHosts) {
  NaptRig rig(Dict{{"filtering", "address_and_port_dependent"}});
  const Ep b = rig.out(udp(kB, kServer));
  EXPECT_EQ(rig.send(udp(kA, b)).drop, "nat_filtered");
}

TEST(NaptHairpin, Rfc5508Req7ErrorsAreTranslatedTwice) {
  NaptRig rig;
  const Ep b = rig.out(udp(kB, kServer));
  const Sent there = rig.send(udp(kA, b));
  const Bytes heard(there.bytes.begin() + 14, there.bytes.begin() + 14 + 38);
  const Sent error = rig.send(icmp_error(kHostB, kExternal, heard, 38));
  EXPECT_EQ(error.gate, 1U) << error.drop;
  EXPECT_EQ(net::load32(ip_of(error.bytes) + 12), kExternal);
  EXPECT_EQ(net::load32(ip_of(error.bytes) + 16), kHostA);
  EXPECT_EQ(src_of(quote_of(error.bytes)), kA);
  EXPECT_EQ(dst_of(quote_of(error.bytes)), b);
}

struct Parts {
  Bytes first, second;
};
// A UDP packet in two fragments; the checksum is that of the whole packet.
Parts cut(Ep from, Ep to, uint16_t id) {
  const Bytes whole = udp_part(from, to, 56);
  const Bytes head(whole.begin(), whole.begin() + 32);
  const Bytes tail(whole.begin() + 32, whole.end());
  return {frame_of(ipv4({.src = from.ip, .dst = to.ip, .id = id, .fragment = 0x2000}, head)),
          frame_of(ipv4({.src = from.ip, .dst = to.ip, .id = id, .fragment = 4}, tail))};
}

TEST(NaptFragments, Rfc4787Req14LaterOnesFollowTheFirst) {
  NaptRig rig;
  const Parts out = cut(kA, kServer, 77);
  const Sent first = rig.send(out.first);
  const Sent second = rig.send(out.second);
  EXPECT_EQ(first.gate, 0U) << first.drop;
  EXPECT_EQ(second.gate, 0U) << second.drop;
  EXPECT_EQ(net::load32(ip_of(second.bytes) + 12), kExternal);
  // The reassembled packet has correct checksums.
  Bytes l4(ip_of(first.bytes) + 20, ip_of(first.bytes) + 52);
  l4.insert(l4.end(), ip_of(second.bytes) + 20, ip_of(second.bytes) + 52);
  EXPECT_EQ(wrong_sums(frame_of(ipv4({.src = kExternal, .dst = kServer.ip}, l4))), "");
  const Parts in = cut(kServer, first.src(), 78);
  EXPECT_EQ(rig.send(in.first).gate, 1U);
  const Sent inbound = rig.send(in.second);
  EXPECT_EQ(inbound.gate, 1U);
  EXPECT_EQ(net::load32(ip_of(inbound.bytes) + 16), kHostA);
  EXPECT_EQ(rig.count("later_fragment_pkts"), 2);
}

TEST(NaptFragments, BeforeTheFirstOrTooLateTheyAreDropped) {
  NaptRig rig;
  const Parts parts = cut(kA, kServer, 77);
  EXPECT_EQ(rig.send(parts.second).drop, "fragment_unknown");
  EXPECT_EQ(rig.send(parts.first).drop, "");
  EXPECT_EQ(rig.send(cut(kA, kServer, 76).second).drop, "fragment_unknown");
  EXPECT_EQ(rig.send(parts.second).drop, "");
  rig.pass(31);
  EXPECT_EQ(rig.send(parts.second).drop, "fragment_unknown");
}

TEST(NaptFragments, OverlappingOnesAreDropped) {
  NaptRig rig;
  const Parts parts = cut(kA, kServer, 77);
  rig.send(parts.first);
  Bytes overlap = parts.second;
  net::store16(&overlap[14 + 6], 1);
  mend_ipv4_checksum(overlap);
  EXPECT_EQ(rig.send(overlap).drop, "fragment_overlap");
}

TEST(NaptFragments, MemoryIsBoundedAndTheOldestAreForgotten) {
  NaptRig rig(Dict{{"max_fragments", 64}});
  for (uint16_t id = 0; id < 1000; ++id) rig.send(cut(kA, kServer, id).first);
  uint32_t n_known = 0;
  for (uint16_t id = 0; id < 1000; ++id)
    n_known += rig.send(cut(kA, kServer, id).second).drop.empty();
  EXPECT_LE(n_known, 64U);
  EXPECT_GE(n_known, 40U);
  EXPECT_EQ(rig.send(cut(kA, kServer, 999).second).drop, "");
}

TEST(NaptFaults, EachHasItsReason) {
  NaptRig rig;
  Bytes version = udp(kA, kServer), header = version, total = version, tiny = tcp(kA, kServer);
  version[14] = 0x65;
  header[14] = 0x4f;
  net::store16(&total[16], 1500);
  net::store16(&tiny[16], 33);
  EXPECT_EQ(rig.send(version).drop, "bad_version");
  EXPECT_EQ(rig.send(header).drop, "bad_header_length");
  EXPECT_EQ(rig.send(total).drop, "bad_total_length");
  EXPECT_EQ(rig.send(tiny).drop, "too_short");
  EXPECT_EQ(rig.send(Bytes{}).drop, "too_short");
  const Bytes gre = frame_of(ipv4({.src = kHostA, .dst = kServer.ip, .proto = 47}, Bytes(20)));
  EXPECT_EQ(rig.send(gre).drop, "nat_protocol");
}

TEST(NaptFaults, EveryPrefixOfAPacketIsSafe) {
  NaptRig rig;
  const Ep end = rig.out(udp(kA, kServer));
  for (const Bytes& whole : {tcp(kA, kServer), udp(kA, kServer), echo(kHostA, kServer.ip, 1),
                             icmp_error(kRouter, kExternal, udp_ip(end, kServer), 60)}) {
    for (size_t n = 0; n <= whole.size(); ++n) {
      const Bytes cut_frame(whole.begin(), whole.begin() + static_cast<long>(n));
      (void)rig.harness().run({cut_frame});
      if (n < 16 + 20) continue;
      Bytes honest = cut_frame;  // with the total length corrected
      net::store16(&honest[16], static_cast<uint16_t>(n - 14));
      (void)rig.harness().run({honest});
    }
  }
  EXPECT_EQ(rig.harness().leaked_pkts(), 0U);
}

}  // namespace napt_icmp_test
}  // namespace batchplane
