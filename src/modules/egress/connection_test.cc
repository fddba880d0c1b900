// SPDX-License-Identifier: BSD-3-Clause
// connection_test.cc - connection hashes, and ECN marks that do not change them.
#include "modules/egress/connection.h"

#include <gtest/gtest.h>

#include <set>

#include "module_harness.h"

namespace batchplane {
namespace connection_test {

using egress::kMarkBit;

class Connection : public testing::Test {
 protected:
  Packet& packet(const Bytes& frame) {
    pkt_ = harness_.make_packet(frame);
    return *pkt_;
  }
  void TearDown() override { PacketPool::free_bulk(&pkt_, 1); }
  Bytes bytes() { return {pkt_->data(), pkt_->data() + pkt_->len_bytes()}; }

  ModuleHarness harness_{"null", {}};
  Packet* pkt_ = nullptr;
};

Bytes frame4(uint32_t ecn, uint16_t src_port = 1) {
  Bytes frame = make_frame();
  frame[net::kEthBytes + 1] = static_cast<uint8_t>(46 << 2 | ecn);
  net::store16(&frame[net::kEthBytes + 20], src_port);
  mend_ipv4_checksum(frame);
  return frame;
}
Bytes frame6(uint32_t ecn) {
  Bytes frame(74);
  net::store16(&frame[12], net::kTypeIpv6);
  net::store32(&frame[14], 6U << 28 | 46U << 22 | ecn << 20 | 0x12345);
  frame[20] = 17;
  return frame;
}
Bytes tagged(Bytes frame) {
  const Bytes tag{0x81, 0, 0, 5};
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

TEST_F(Connection, MarksLeaveChecksumsRight) {
  for (const uint32_t ecn : {1U, 2U, 3U}) {
    const std::pair<Bytes, Bytes> cases[] = {{frame4(ecn), frame4(3)},
                                             {frame6(ecn), frame6(3)},
                                             {tagged(frame4(ecn)), tagged(frame4(3))}};
    for (const auto& [before, after] : cases) {
      EXPECT_NE(connection_word(packet(before), 5) & kMarkBit, 0U);
      mark_congestion(*pkt_);
      EXPECT_EQ(bytes(), after);
      PacketPool::free_bulk(&pkt_, 1);
    }
  }
  EXPECT_EQ(connection_word(packet(frame4(0)), 5) & kMarkBit, 0U);
}

TEST_F(Connection, IsKnownByPortsBehindTagsToo) {
  const auto word_of = [&](const Bytes& frame) {
    const uint32_t word = connection_word(packet(frame), 77);
    PacketPool::free_bulk(&pkt_, 1);
    return word;
  };
  EXPECT_EQ(word_of(frame4(0, 7)), word_of(tagged(frame4(0, 7))));
  EXPECT_EQ(word_of(frame4(0)) & egress::kFlowMask, 77U);
  std::set<uint32_t> words;
  for (uint16_t port = 1; port < 100; ++port) words.insert(word_of(frame4(0, port)));
  EXPECT_GT(words.size(), 50U);
  EXPECT_EQ(word_of(Bytes(60)), 77U);
  packet(Bytes(60));
}

}  // namespace connection_test
}  // namespace batchplane
