// SPDX-License-Identifier: BSD-3-Clause
// ipv6_header_test.cc - chains of extension headers: whole, cut short, too long, fragmented.
#include "modules/headers/ipv6_header.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace batchplane {
namespace {

using Bytes = std::vector<uint8_t>;
using End = Extensions6::End;

// An IPv6 header, then the extension headers: each as next header, length field and two more bytes.
Bytes packet_of(uint8_t first, std::initializer_list<Bytes> headers) {
  Bytes packet(net::kIpv6Bytes, 0);
  packet[0] = 0x60;
  packet[net::kIp6NextHeader] = first;
  for (const Bytes& header : headers) packet.insert(packet.end(), header.begin(), header.end());
  return packet;
}
Bytes header_of(uint8_t next, uint8_t length = 0, uint8_t third = 0, uint8_t fourth = 0,
                size_t bytes = 8) {
  Bytes header(bytes, 0);
  header[0] = next;
  header[1] = length;
  header[2] = third;
  header[3] = fourth;
  return header;
}
template <typename Kinds = AllExtensions>
Extensions6 walk(const Bytes& packet) {
  return walk_extensions6<Kinds>(header_at<net::Ipv6>(packet.data()),
                                 static_cast<uint32_t>(packet.size()));
}
UpperLayer6 strictly(const Bytes& packet) {
  return upper_layer6(header_at<net::Ipv6>(packet.data()), static_cast<uint32_t>(packet.size()));
}

TEST(Ipv6Header, NoneToPassOver) {
  const Extensions6 found = walk(packet_of(net::kProtoUdp, {}));
  EXPECT_EQ(found.end, End::kWhole);
  EXPECT_EQ(found.protocol, net::kProtoUdp);
  EXPECT_EQ(found.offset_bytes, 40U);
  EXPECT_EQ(found.n_headers, 0U);
}

TEST(Ipv6Header, LengthsAreThoseOfTheirKinds) {
  const Bytes packet = packet_of(
      net::kNextHopByHop,
      {header_of(net::kNextAuthentication, 1, 0, 0, 16), header_of(net::kNextFragment, 4, 0, 0, 24),
       header_of(net::kNextDestination, 77), header_of(net::kProtoTcp)});
  const Extensions6 found = walk(packet);
  EXPECT_EQ(found.end, End::kWhole);
  EXPECT_EQ(found.protocol, net::kProtoTcp);
  EXPECT_EQ(found.n_headers, 4U);
  EXPECT_EQ(found.fragment_bytes, 80U);
  EXPECT_EQ(found.offset_bytes, packet.size());
  EXPECT_FALSE(found.is_fragment);
}

TEST(Ipv6Header, KindsThatAreNotNamedEndTheWalk) {
  const Bytes packet =
      packet_of(net::kNextDestination, {header_of(net::kNextAuthentication),
                                        header_of(net::kNextMobility), header_of(net::kNextNone)});
  EXPECT_EQ(walk<CommonExtensions>(packet).protocol, net::kNextAuthentication);
  EXPECT_EQ(walk<TransportExtensions>(packet).protocol, net::kNextMobility);
  EXPECT_EQ(walk<AllExtensions>(packet).protocol, net::kNextNone);
}

TEST(Ipv6Header, LaterFragmentsEndTheWalk) {
  const Bytes packet = packet_of(
      net::kNextFragment, {header_of(net::kNextDestination, 0, 0, 8), header_of(net::kProtoTcp)});
  const Extensions6 found = walk(packet);
  EXPECT_EQ(found.end, End::kWhole);
  EXPECT_TRUE(found.is_fragment);
  EXPECT_FALSE(found.is_first_fragment);
  EXPECT_EQ(found.protocol, net::kNextDestination);
  EXPECT_EQ(found.offset_bytes, 48U);
  EXPECT_EQ(strictly(packet).offset_bytes, 0U);
  EXPECT_EQ(strictly(packet).fault, UpperLayer6::Fault::kNone);
  EXPECT_FALSE(strictly(packet).is_here());
}

TEST(Ipv6Header, FirstFragmentsHaveTheHeader) {
  const Bytes packet = packet_of(net::kNextFragment, {header_of(net::kProtoUdp, 0, 0, 1)});
  EXPECT_TRUE(walk(packet).is_fragment);
  EXPECT_TRUE(walk(packet).is_first_fragment);
  EXPECT_TRUE(strictly(packet).is_here());
  EXPECT_EQ(strictly(packet).offset_bytes, 48U);
}

TEST(Ipv6Header, CutShort) {
  Bytes packet = packet_of(net::kNextDestination, {header_of(net::kProtoUdp, 1)});
  EXPECT_EQ(walk(packet).end, End::kTruncated);  // it claims 16 bytes
  EXPECT_EQ(walk(packet).protocol, net::kProtoUdp);
  packet.resize(packet.size() - 1);
  EXPECT_EQ(walk(packet).end, End::kTruncated);
  EXPECT_EQ(walk(packet).protocol, net::kNextDestination);
  EXPECT_EQ(strictly(packet).fault, UpperLayer6::Fault::kTruncated);
}

TEST(Ipv6Header, EightArePassedOverAndNoMore) {
  Bytes packet = packet_of(net::kNextDestination, {});
  for (uint32_t i = 0; i < kMaxExtensionHeaders; ++i) {
    const uint8_t next = i + 1 == kMaxExtensionHeaders ? net::kProtoUdp : net::kNextDestination;
    const Bytes header = header_of(next);
    packet.insert(packet.end(), header.begin(), header.end());
  }
  EXPECT_EQ(walk(packet).end, End::kWhole);
  EXPECT_EQ(walk(packet).protocol, net::kProtoUdp);
  packet[packet.size() - 8] = net::kNextDestination;
  EXPECT_EQ(walk(packet).end, End::kTooMany);
  EXPECT_EQ(strictly(packet).fault, UpperLayer6::Fault::kTooMany);
}

TEST(Ipv6Header, LateHopByHopAndSegmentsLeft) {
  const Bytes packet = packet_of(
      net::kNextRouting, {header_of(net::kNextHopByHop, 0, 0, 1), header_of(net::kProtoUdp)});
  EXPECT_EQ(walk(packet).end, End::kWhole);
  EXPECT_TRUE(walk(packet).has_late_hop_by_hop);
  EXPECT_TRUE(walk(packet).has_segments_left);
  EXPECT_EQ(strictly(packet).fault, UpperLayer6::Fault::kMisplaced);
}

}  // namespace
}  // namespace batchplane
