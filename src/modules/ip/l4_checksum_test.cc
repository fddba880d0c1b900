// SPDX-License-Identifier: BSD-3-Clause
// l4_checksum_test.cc - transport checksums against a plain sum of 16-bit words, and packets that
// have none or are broken.
#include <gtest/gtest.h>

#include <random>

#include "module_harness.h"

namespace batchplane {
namespace {

constexpr uint32_t kL3 = net::kEthBytes;

Bytes ipv6_frame(uint8_t proto, uint32_t len_bytes, const Bytes& extensions = {},
                 uint8_t first_header = 0) {
  Bytes frame(len_bytes);
  frame[12] = 0x86;
  frame[13] = 0xdd;
  uint8_t* ip = &frame[kL3];
  ip[0] = 0x60;
  net::store16(ip + 4, static_cast<uint16_t>(len_bytes - kL3 - 40));
  ip[6] = extensions.empty() ? proto : first_header;
  for (uint32_t i = 0; i < 32; ++i) ip[8 + i] = static_cast<uint8_t>(i * 37 + 5);
  std::ranges::copy(extensions, ip + 40);
  return frame;
}

uint32_t checksum_at(uint8_t proto) { return proto == 6 ? 16 : proto == 17 ? 6 : 2; }

// Writes the correct checksum of the transport header at `l4`, computed the slow way.
void set_sum(Bytes& frame, uint8_t proto, uint32_t l4, uint32_t len_bytes) {
  const bool is_v6 = frame[kL3] >> 4 == 6;
  net::store16(&frame[l4 + checksum_at(proto)], 0);
  Bytes all;
  if (is_v6) {
    all.assign(frame.begin() + kL3 + 8, frame.begin() + kL3 + 40);
    all.insert(all.end(), {0, 0, static_cast<uint8_t>(len_bytes >> 8),
                           static_cast<uint8_t>(len_bytes), 0, 0, 0, proto});
  } else if (proto != 1) {
    all.assign(frame.begin() + kL3 + 12, frame.begin() + kL3 + 20);
    all.insert(all.end(),
               {0, proto, static_cast<uint8_t>(len_bytes >> 8), static_cast<uint8_t>(len_bytes)});
  }
  all.insert(all.end(), frame.begin() + l4, frame.begin() + l4 + len_bytes);
  uint32_t sum = 0;
  for (size_t i = 0; i < all.size(); ++i) sum += i % 2 == 0 ? all[i] << 8 : all[i];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  uint16_t checksum = static_cast<uint16_t>(~sum);
  if (checksum == 0 && proto == 17) checksum = 0xffff;
  net::store16(&frame[l4 + checksum_at(proto)], checksum);
}

struct Sample {
  Bytes good;
  uint32_t l4;
  uint8_t proto;
};

Sample sample(uint8_t proto, bool is_v6, uint32_t len_bytes, std::mt19937& random,
              uint32_t padding_bytes = 0) {
  const uint32_t options = is_v6 ? 0 : random() % 11 * 4;
  const uint32_t l4 = kL3 + (is_v6 ? 40 : 20 + options);
  const uint32_t total = l4 + len_bytes;
  Sample made{is_v6 ? ipv6_frame(proto, total)
                    : make_frame({.ip_src = static_cast<uint32_t>(random()),
                                  .ip_dst = static_cast<uint32_t>(random()),
                                  .proto = proto,
                                  .len_bytes = total,
                                  .options_bytes = options}),
              l4, proto};
  for (uint32_t i = l4; i < total; ++i) made.good[i] = static_cast<uint8_t>(random());
  if (proto == 17) net::store16(&made.good[l4 + 4], static_cast<uint16_t>(len_bytes));
  set_sum(made.good, proto, l4, len_bytes);
  made.good.insert(made.good.end(), padding_bytes, 0xee);
  return made;
}

const std::pair<uint8_t, bool> kKinds[] = {{6, false}, {17, false}, {1, false},
                                           {6, true},  {17, true},  {58, true}};

TEST(L4Checksum, AgreesWithAPlainSumOfEveryLength) {
  std::mt19937 random(1);
  ModuleHarness check("l4_checksum");
  ModuleHarness update("l4_checksum", {{"mode", "update"}, {"fill_zero_udp", true}});
  for (const auto& [proto, is_v6] : kKinds) {
    for (uint32_t len = 20; len < 120; ++len) {
      const Sample s = sample(proto, is_v6, len, random, len % 3);
      Bytes bad = s.good;
      bad[s.l4 + random() % len] ^= static_cast<uint8_t>(1U << random() % 8);
      const Outcome outcome = check.run({s.good, bad});
      ASSERT_EQ(outcome.at(0), std::vector<Bytes>{s.good}) << int{proto} << " " << len;
      ASSERT_EQ(outcome.drops.size(), 1U);
      bad = s.good;
      net::store16(&bad[s.l4 + checksum_at(proto)], static_cast<uint16_t>(random()));
      ASSERT_EQ(update.run({bad}).at(0), std::vector<Bytes>{s.good}) << int{proto} << " " << len;
    }
    const Sample big = sample(proto, is_v6, 1401, random);
    ASSERT_EQ(check.run({big.good}).at(0).size(), 1U);
  }
  EXPECT_EQ(check.leaked_pkts(), 0U);
}

TEST(L4Checksum, AUdpSumOfZeroIsSentAsAllOnes) {
  std::mt19937 random(2);
  ModuleHarness update("l4_checksum", {{"mode", "update"}});
  for (const bool is_v6 : {false, true}) {
    Sample s = sample(17, is_v6, 20, random);
    // Add the checksum to the payload, so that the new checksum comes to 0 (sent as 0xffff).
    const uint32_t sum = net::load16(&s.good[s.l4 + 6]);
    const uint32_t word = net::load16(&s.good[s.l4 + 10]) + sum;
    net::store16(&s.good[s.l4 + 10], static_cast<uint16_t>((word & 0xffff) + (word >> 16)));
    set_sum(s.good, 17, s.l4, 20);
    ASSERT_EQ(net::load16(&s.good[s.l4 + 6]), 0xffff);
    Bytes other = s.good;
    net::store16(&other[s.l4 + 6], 0x1234);
    EXPECT_EQ(update.run({other}).at(0), std::vector<Bytes>{s.good});
  }
}

TEST(L4Checksum, UdpWithoutChecksum) {
  std::mt19937 random(3);
  Bytes v4 = sample(17, false, 30, random).good;
  const uint32_t l4_of_v4 = kL3 + (v4[kL3] & 15) * 4;
  const Bytes summed = v4;
  net::store16(&v4[l4_of_v4 + 6], 0);
  Bytes v6 = sample(17, true, 30, random).good;
  const Bytes summed6 = v6;
  net::store16(&v6[kL3 + 46], 0);
  ModuleHarness check("l4_checksum");
  Outcome outcome = check.run({v4, v6});
  EXPECT_EQ(outcome.at(0), std::vector<Bytes>{v4});
  EXPECT_EQ(outcome.dropped_for("bad_l4_checksum"), 1U);
  EXPECT_EQ(check.module().show()["no_checksum_pkts"].as_int(), 1);
  ModuleHarness lenient("l4_checksum", {{"allow_zero_udp6", true}});
  EXPECT_EQ(lenient.run({v6}).at(0), std::vector<Bytes>{v6});
  ModuleHarness update("l4_checksum", {{"mode", "update"}});
  EXPECT_EQ(update.run({v4, v6}).at(0), (std::vector<Bytes>{v4, summed6}));
  ModuleHarness fill("l4_checksum", {{"mode", "update"}, {"fill_zero_udp", true}});
  EXPECT_EQ(fill.run({v4}).at(0), std::vector<Bytes>{summed});
}

TEST(L4Checksum, FragmentsAndOtherProtocolsPassAndAreCounted) {
  Bytes first = make_frame();
  net::store16(&first[kL3 + 6], 0x2000);
  Bytes later = make_frame();
  net::store16(&later[kL3 + 6], 0x0005);
  const Bytes other = make_frame({.proto = 47});
  const Bytes v6_fragment = ipv6_frame(17, 80, {17, 0, 0, 9, 0, 0, 0, 1}, 44);
  const Bytes no_next = ipv6_frame(59, 60);
  const Bytes routed = ipv6_frame(6, 100, {6, 0, 0, 1, 0, 0, 0, 0}, 43);
  ModuleHarness check("l4_checksum");
  const std::vector<Bytes> frames = {first, later, other, v6_fragment, no_next, routed};
  EXPECT_EQ(check.run(frames).at(0), frames);
  EXPECT_EQ(check.module().show()["fragment_pkts"].as_int(), 3);
  EXPECT_EQ(check.module().show()["other_pkts"].as_int(), 3);
  ModuleHarness next("l4_checksum");
  next.module().adopt(check.module());
  EXPECT_EQ(next.module().show()["other_pkts"].as_int(), 3);
}

TEST(L4Checksum, FindsTheHeaderBehindExtensions) {
  // Hop by hop, destination options of 16 bytes, an atomic fragment header, authentication.
  Bytes extensions = {60, 0, 1, 4, 0, 0, 0, 0};
  Bytes more(16);
  more[0] = 44;
  more[1] = 1;
  extensions.insert(extensions.end(), more.begin(), more.end());
  extensions.insert(extensions.end(), {51, 0, 0, 0, 0, 0, 0, 7});
  Bytes authentication(24);
  authentication[0] = 17;
  authentication[1] = 4;
  extensions.insert(extensions.end(), authentication.begin(), authentication.end());
  const auto l4 = static_cast<uint32_t>(kL3 + 40 + extensions.size());
  Bytes frame = ipv6_frame(17, l4 + 20, extensions, 0);
  net::store16(&frame[l4 + 4], 20);
  set_sum(frame, 17, l4, 20);
  Bytes bad = frame;
  bad[l4 + 12] ^= 1;
  ModuleHarness check("l4_checksum");
  const Outcome outcome = check.run({frame, bad});
  EXPECT_EQ(outcome.at(0), std::vector<Bytes>{frame});
  EXPECT_EQ(outcome.dropped_for("bad_l4_checksum"), 1U);
  // An endless chain is left alone.
  Bytes chain;
  for (int i = 0; i < 12; ++i) chain.insert(chain.end(), {60, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(check.run({ipv6_frame(60, 160, chain, 60)}).at(0).size(), 1U);
  Bytes overlong = ipv6_frame(17, 70, {17, 200, 0, 0, 0, 0, 0, 0}, 60);
  EXPECT_EQ(check.run({overlong}).dropped_for("bad_header_length"), 1U);
}

TEST(L4Checksum, BrokenAndTruncatedPacketsAreDropped) {
  std::mt19937 random(4);
  ModuleHarness check("l4_checksum");
  for (const auto& [proto, is_v6] : kKinds) {
    const Bytes good = sample(proto, is_v6, 40, random).good;
    std::vector<Bytes> cut;
    for (uint32_t len = 0; len < good.size(); ++len) {
      cut.emplace_back(good.begin(), good.begin() + len);
    }
    EXPECT_EQ(check.run(cut).drops.size(), cut.size());
  }
  Bytes udp = make_frame();
  const uint32_t l4 = kL3 + 20;
  for (const uint16_t own_bytes : {uint16_t{0}, uint16_t{7}, uint16_t{27}, uint16_t{0xffff}}) {
    net::store16(&udp[l4 + 4], own_bytes);
    EXPECT_EQ(check.run({udp}).dropped_for("bad_l4_length"), 1U) << own_bytes;
  }
  EXPECT_EQ(check.run({make_frame({.proto = 6, .len_bytes = kL3 + 20 + 19})})
                .dropped_for("bad_l4_length"),
            1U);
  Bytes version = make_frame();
  version[kL3] = 0x75;
  EXPECT_EQ(check.run({version}).dropped_for("bad_version"), 1U);
  Bytes total = make_frame();
  net::store16(&total[kL3 + 2], 300);
  EXPECT_EQ(check.run({total}).dropped_for("bad_total_length"), 1U);
  Bytes header = make_frame();
  header[kL3] = 0x44;
  EXPECT_EQ(check.run({header}).dropped_for("bad_header_length"), 1U);
}

}  // namespace
}  // namespace batchplane
