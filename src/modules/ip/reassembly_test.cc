// SPDX-License-Identifier: BSD-3-Clause
// reassembly_test.cc - fragments in any order become the original packet; attacks and losses end in
// counted drops and bounded memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "module_harness.h"

namespace batchplane {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

Bytes datagram(uint32_t payload_bytes, uint16_t id = 7, uint8_t proto = net::kProtoUdp) {
  Bytes frame = make_frame({.proto = proto, .len_bytes = 34 + payload_bytes});
  for (uint32_t i = 34; i < frame.size(); ++i) frame[i] = static_cast<uint8_t>(i * 13 + (i >> 8));
  net::store16(&frame[18], id);
  mend_ipv4_checksum(frame);
  return frame;
}
// Bytes [at, at + n) of the payload of `whole`.
Bytes piece(const Bytes& whole, uint32_t at, uint32_t n, bool is_more) {
  Bytes frame(whole.begin(), whole.begin() + 34);
  frame.insert(frame.end(), whole.begin() + 34 + at, whole.begin() + 34 + at + n);
  net::store16(&frame[16], static_cast<uint16_t>(20 + n));
  net::store16(&frame[20], static_cast<uint16_t>(at / 8 | (is_more ? 0x2000 : 0)));
  mend_ipv4_checksum(frame);
  return frame;
}
std::vector<Bytes> cut(const Bytes& whole, Rng& rng) {
  const auto payload = static_cast<uint32_t>(whole.size()) - 34;
  std::vector<Bytes> parts;
  for (uint32_t at = 0; at < payload;) {
    const uint32_t n = std::min(payload - at, 24 + 8 * rng.below(40));
    parts.push_back(piece(whole, at, n, at + n < payload));
    at += n;
  }
  return parts;
}

class ReassemblyTest : public testing::Test {
 protected:
  std::string fate(const Bytes& frame) {
    const Outcome outcome = harness_.run({frame});
    if (!outcome.outputs.empty() || !outcome.emitted.empty()) return "out";
    return outcome.drops.empty() ? "held" : outcome.drops.back().reason;
  }
  ModuleHarness harness_{"reassembly", {{"max_datagrams", 8}, {"max_hold_pkts", 64}}};
};

TEST_F(ReassemblyTest, FragmentsInAnyOrderBecomeTheWhole) {
  Rng rng(5);
  for (uint16_t round = 0; round < 500; ++round) {
    const Bytes whole = datagram(400 + rng.below(1000), round);
    std::vector<Bytes> parts = cut(whole, rng);
    for (size_t i = parts.size(); i > 1; --i)
      std::swap(parts[i - 1], parts[rng.below(static_cast<uint32_t>(i))]);
    std::vector<Bytes> out;
    for (const Bytes& part : parts) {
      const Outcome outcome = harness_.run({part});
      for (const Bytes& frame : outcome.at(0)) out.push_back(frame);
    }
    ASSERT_EQ(out, std::vector<Bytes>{whole}) << round;
  }
  EXPECT_EQ(harness_.module().held_pkts(), 0U);
  EXPECT_EQ(harness_.leaked_pkts(), 0U);
  EXPECT_EQ(harness_.module().show()["reassembled"].as_int(), 500);
}

TEST_F(ReassemblyTest, InterleavedPacketsInOneBatch) {
  Rng rng(6);
  std::vector<Bytes> mixed;
  std::vector<Bytes> wholes;
  for (uint16_t id = 0; id < 6; ++id) {
    wholes.push_back(datagram(900, id));
    for (const Bytes& part : cut(wholes.back(), rng)) {
      mixed.insert(mixed.begin() + rng.below(static_cast<uint32_t>(mixed.size()) + 1), part);
    }
  }
  mixed.push_back(datagram(100));
  Outcome outcome = harness_.run(mixed);
  std::vector<Bytes> out = outcome.at(0);
  wholes.push_back(datagram(100));
  std::ranges::sort(out);
  std::ranges::sort(wholes);
  EXPECT_EQ(out, wholes);
  EXPECT_EQ(outcome.dropped_for("reassembled"), outcome.drops.size());
}

TEST_F(ReassemblyTest, OverlapsEndThePacketAndWhatStillComesOfIt) {
  const Bytes whole = datagram(200);
  EXPECT_EQ(fate(piece(whole, 0, 64, true)), "held");
  EXPECT_EQ(fate(piece(whole, 0, 64, true)), "fragment_duplicate");
  EXPECT_EQ(fate(piece(whole, 56, 64, true)), "fragment_overlap");
  EXPECT_EQ(harness_.module().held_pkts(), 0U);
  EXPECT_EQ(fate(piece(whole, 120, 80, false)), "fragment_overlap");
  harness_.set_now_ns(40 * kSecond);
  harness_.housekeep();
  EXPECT_EQ(fate(piece(whole, 0, 64, true)), "held");
}

TEST_F(ReassemblyTest, EndsThatDisagreeAreOverlaps) {
  const Bytes whole = datagram(400);
  EXPECT_EQ(fate(piece(whole, 64, 64, false)), "held");
  EXPECT_EQ(fate(piece(whole, 128, 64, true)), "fragment_overlap");
  const Bytes other = datagram(400, 8);
  EXPECT_EQ(fate(piece(other, 128, 64, true)), "held");
  EXPECT_EQ(fate(piece(other, 64, 64, false)), "fragment_overlap");
}

TEST_F(ReassemblyTest, EachFaultHasItsReason) {
  const Bytes whole = datagram(400);
  EXPECT_EQ(fate(piece(whole, 64, 63, true)), "fragment_malformed");
  EXPECT_EQ(fate(piece(whole, 64, 0, false)), "fragment_malformed");
  const Bytes tcp = datagram(400, 9, net::kProtoTcp);
  EXPECT_EQ(fate(piece(tcp, 0, 16, true)), "fragment_tiny");
  EXPECT_EQ(fate(piece(tcp, 8, 64, true)), "fragment_tiny");
  EXPECT_EQ(fate(piece(tcp, 24, 64, true)), "held");
  Bytes far = piece(whole, 64, 64, false);
  net::store16(&far[20], 0x1fff);
  EXPECT_EQ(fate(far), "fragment_too_long");
  Bytes cut_short = piece(whole, 64, 64, true);
  cut_short.pop_back();
  EXPECT_EQ(fate(cut_short), "too_short");
  EXPECT_EQ(fate(Bytes(33)), "too_short");
  EXPECT_EQ(fate(whole), "out");
}

TEST_F(ReassemblyTest, BuffersThatAreTooSmallEndThePacket) {
  const Bytes whole = datagram(3000);
  EXPECT_EQ(fate(piece(whole, 0, 1480, true)), "held");
  EXPECT_EQ(fate(piece(whole, 1480, 1480, true)), "held");
  const Outcome outcome = harness_.run({piece(whole, 2960, 40, false)});
  EXPECT_EQ(outcome.dropped_for("fragment_too_long"), 3U);
  EXPECT_EQ(harness_.leaked_pkts(), 0U);
}

TEST_F(ReassemblyTest, ManyPartsEndThePacket) {
  ModuleHarness large("reassembly", {{"max_hold_pkts", 200}});
  const Bytes whole = datagram(1200);
  Outcome last;
  for (uint32_t i = 1; i < 66; ++i) last = large.run({piece(whole, i * 16, 8, true)});
  EXPECT_EQ(last.dropped_for("fragment_too_many"), 65U);
  EXPECT_EQ(large.leaked_pkts(), 0U);
}

TEST_F(ReassemblyTest, LostFragmentsTimeOut) {
  harness_.set_now_ns(kSecond);
  fate(piece(datagram(200, 1), 0, 64, true));
  harness_.set_now_ns(30 * kSecond);
  fate(piece(datagram(200, 2), 0, 64, true));
  EXPECT_TRUE(harness_.housekeep().drops.empty());
  harness_.set_now_ns(32 * kSecond);
  EXPECT_EQ(harness_.housekeep().dropped_for("reassembly_timeout"), 1U);
  EXPECT_EQ(harness_.module().held_pkts(), 1U);
}

TEST_F(ReassemblyTest, FloodsTakeBoundedMemoryAndTheOldestGo) {
  for (uint16_t id = 0; id < 2000; ++id) {
    const Outcome outcome = harness_.run({piece(datagram(200, id), 0, 64, true)});
    EXPECT_EQ(outcome.dropped_for("reassembly_full"), id < 8 ? 0U : 1U);
    ASSERT_LE(harness_.module().held_pkts(), 64U);
  }
  EXPECT_EQ(fate(piece(datagram(200, 1999), 64, 136, false)), "out");  // the newest survive
}

TEST_F(ReassemblyTest, HeldPacketsAreHandedOut) {
  fate(piece(datagram(200, 1), 0, 64, true));
  fate(piece(datagram(200, 2), 0, 64, true));
  uint32_t n = 0;
  harness_.module().give_up_held([&](Packet* pkt) {
    harness_.ctx().free(pkt);
    ++n;
  });
  EXPECT_EQ(n, 2U);
  EXPECT_EQ(harness_.module().held_pkts(), 0U);
  EXPECT_EQ(harness_.leaked_pkts(), 0U);
}

TEST_F(ReassemblyTest, GarbageIsNeverReadBeyondItsEnd) {
  Rng rng(21);
  uint64_t now = kSecond;
  for (uint32_t round = 0; round < 5000; ++round) {
    const Bytes whole = datagram(400, static_cast<uint16_t>(rng.below(4)));
    Bytes frame = piece(whole, 8 * rng.below(20), 8 + rng.below(200), rng.below(3) != 0);
    if (rng.below(4) == 0) frame[14 + rng.below(20)] = static_cast<uint8_t>(rng.next());
    if (rng.below(8) == 0) frame.resize(rng.below(static_cast<uint32_t>(frame.size())));
    harness_.set_now_ns(now += kSecond / 10);
    harness_.run({frame});
    if (round % 50 == 0) harness_.housekeep();
  }
  EXPECT_EQ(harness_.leaked_pkts(), 0U);
}

}  // namespace
}  // namespace batchplane
