// SPDX-License-Identifier: BSD-3-Clause
// rewrite_test.cc - fields are set under their masks; updated checksums equal recomputed ones.
#include <gtest/gtest.h>

#include <random>

#include "module_harness.h"

namespace batchplane {
namespace {

constexpr uint32_t kL3 = net::kEthBytes;

Dict field(const std::string& base, int offset, int size, const Value& value) {
  return {{"base", base}, {"offset", offset}, {"size_bytes", size}, {"value", value}};
}
Dict with(List fields, bool mends = true) {
  return {{"fields", std::move(fields)}, {"mend_checksums", mends}};
}
Bytes through(const std::string& kind, const Dict& params, const Bytes& frame) {
  ModuleHarness harness(kind, params);
  return harness.run({frame}).at(0).at(0);
}
// The frame with both checksums recomputed.
Bytes summed(const Bytes& frame) {
  Bytes out = through("l4_checksum", {{"mode", "update"}}, frame);
  return out[kL3] >> 4 == 4 ? through("checksum", {}, out) : out;
}
std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}

Bytes random_packet(std::mt19937& random, uint8_t proto, bool is_v6) {
  const uint32_t options = is_v6 ? 0 : random() % 3 * 4;
  const uint32_t header = is_v6 ? 40 : 20 + options;
  const uint32_t l4_bytes = 20 + random() % 60;
  const uint32_t l4 = kL3 + header;
  Bytes frame = make_frame({.proto = proto, .len_bytes = l4 + l4_bytes, .options_bytes = options});
  if (is_v6) {
    frame.assign(l4 + l4_bytes, 0);
    frame[12] = 0x86, frame[13] = 0xdd, frame[14] = 0x60;
    net::store16(&frame[kL3 + 4], static_cast<uint16_t>(l4_bytes));
    frame[kL3 + 6] = proto;
    for (uint32_t i = 8; i < 40; ++i) frame[kL3 + i] = static_cast<uint8_t>(random());
  }
  for (uint32_t i = l4; i < frame.size(); ++i) frame[i] = static_cast<uint8_t>(random());
  if (proto == 17) {
    net::store16(&frame[l4 + 4], static_cast<uint16_t>(l4_bytes));
    net::store16(&frame[l4 + 6], 1);
  }
  return summed(frame);
}

TEST(Rewrite, SetsBitsUnderTheMaskAtEachBase) {
  Dict masked = field("l2", 0, 1, "0x0a");
  masked["mask"] = "0x0f";
  ModuleHarness rewrite("rewrite", with({masked, field("l2", 6, 6, "02:00:00:00:00:ee"),
                                         field("l3", 16, 4, "192.0.2.1"), field("l4", 2, 2, 53)}));
  Bytes frame = make_frame();
  frame[0] = 0x52;
  const Bytes out = rewrite.run({frame}).at(0).at(0);
  EXPECT_EQ(out[0], 0x5a);
  EXPECT_EQ(out[11], 0xee);
  EXPECT_EQ(net::load32(&out[30]), 0xc0000201U);
  EXPECT_EQ(net::load16(&out[36]), 53);
  EXPECT_EQ(net::load16(&out[40]), 0);  // no UDP checksum, and none added
  Bytes again = out;
  mend_ipv4_checksum(again);
  EXPECT_EQ(out, again);
}

TEST(Rewrite, MendedChecksumsEqualThoseComputedAnew) {
  std::mt19937 random(7);
  const std::pair<uint8_t, bool> kinds[] = {{6, false}, {17, false}, {1, false},
                                            {6, true},  {17, true},  {58, true}};
  for (int round = 0; round < 1500; ++round) {
    const auto& [proto, is_v6] = kinds[random() % 6];
    const Bytes frame = random_packet(random, proto, is_v6);
    const uint32_t header = is_v6 ? 40 : (frame[kL3] & 15) * 4;
    List fields;
    for (uint32_t f = 0; f <= random() % 4; ++f) {
      const auto size = static_cast<int>(1 + random() % 8);
      const uint64_t value = (uint64_t{random()} << 32 | random()) >> (64 - 8 * size);
      const auto number = static_cast<int64_t>(value & 0x7fff'ffff'ffff'ffffULL);
      // Addresses and payload change; lengths, protocols and the checksums themselves do not.
      const uint32_t first_address = is_v6 ? 8 : 12;
      const uint32_t last_address = is_v6 ? 40 : 20;
      const uint32_t choice = random() % 3;
      if (choice == 0) {
        const int at = static_cast<int>(first_address + random() % (last_address - first_address));
        const int fits = std::min(size, static_cast<int>(last_address) - at);
        const int64_t cut = number & static_cast<int64_t>((1ULL << (8 * fits - 1)) - 1);
        fields.push_back(random() % 2 != 0 ? field("l3", at, fits, cut)
                                           : field("l2", at + 14, fits, cut));
      } else if (choice == 1) {
        const uint32_t from = proto == 6 ? 18 : 8;
        const uint32_t room = static_cast<uint32_t>(frame.size()) - kL3 - header - from;
        if (room < 9) continue;
        const int at = static_cast<int>(from + random() % (room - 8));
        fields.push_back(field("l4", at, size, number));
      } else {
        fields.push_back(field("l3", is_v6 ? 7 : 8, 1, static_cast<int>(random() % 256)));
      }
    }
    if (fields.empty()) continue;
    const Bytes mended = through("rewrite", with(fields), frame);
    const Bytes plain = through("rewrite", with(fields, false), frame);
    ASSERT_EQ(mended, summed(plain)) << "round " << round << " protocol " << int{proto};
  }
}

TEST(Rewrite, FragmentsKeepTheChecksumOfTheFirst) {
  std::mt19937 random(9);
  Bytes first = random_packet(random, 17, false);
  const uint32_t l4 = kL3 + (first[kL3] & 15) * 4;
  net::store16(&first[kL3 + 6], 0x2000);
  mend_ipv4_checksum(first);
  Bytes later = first;
  net::store16(&later[kL3 + 6], 0x2005);
  mend_ipv4_checksum(later);
  ModuleHarness rewrite("rewrite", with({field("l3", 12, 4, "10.9.8.7"), field("l4", 0, 2, 4000)}));
  const Outcome outcome = rewrite.run({first, later});
  Bytes whole = outcome.at(0)[0];
  net::store16(&whole[kL3 + 6], 0);
  mend_ipv4_checksum(whole);
  EXPECT_EQ(whole, summed(whole));
  EXPECT_EQ(net::load16(&whole[l4]), 4000);
  const Bytes second = outcome.at(0)[1];
  EXPECT_EQ(Bytes(second.begin() + l4, second.end()), Bytes(later.begin() + l4, later.end()));
  EXPECT_EQ(net::load32(&second[kL3 + 12]), 0x0a090807U);
  Bytes again = second;
  mend_ipv4_checksum(again);
  EXPECT_EQ(again, second);
  EXPECT_EQ(rewrite.module().show()["skipped_fragment_pkts"].as_int(), 1);
}

TEST(Rewrite, FramesWithoutIpTakeFieldsOfTheFirstTwoBases) {
  Bytes arp = make_frame();
  arp[13] = 6;
  arp[14] = 0;
  const Bytes out = through("rewrite", with({field("l3", 6, 2, 2)}), arp);
  EXPECT_EQ(out[21], 2);
  EXPECT_EQ(Bytes(out.begin() + 22, out.end()), Bytes(arp.begin() + 22, arp.end()));
  ModuleHarness l4("rewrite", with({field("l4", 0, 2, 2)}));
  EXPECT_EQ(l4.run({arp}).dropped_for("bad_version"), 1U);
}

TEST(Rewrite, ShortAndBrokenPacketsAreDroppedUntouched) {
  ModuleHarness rewrite("rewrite", with({field("l2", 0, 1, 9), field("l4", 6, 8, 1)}));
  std::vector<Bytes> frames;
  for (uint32_t len = 0; len < 60; ++len) {
    frames.push_back(make_frame());
    frames.back().resize(len);
  }
  frames.push_back(
      make_frame({.len_bytes = kL3 + 20 + 13}));  // the field reaches past the end of the packet
  frames.back().resize(60);
  Bytes header = make_frame();
  header[kL3] = 0x43;
  frames.push_back(header);
  const Outcome outcome = rewrite.run(frames);
  EXPECT_EQ(outcome.outputs.size(), 0U);
  EXPECT_EQ(outcome.dropped_for("bad_header_length"), 1U);
  for (size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(outcome.drops[i].bytes, frames[i]);
  ModuleHarness l2("rewrite", with({field("l2", 20, 4, 1)}));
  Bytes tiny(24);
  EXPECT_EQ(l2.run({tiny, Bytes(23)}).dropped_for("too_short"), 1U);
  EXPECT_EQ(l2.leaked_pkts(), 0U);
}

TEST(Rewrite, FieldsAreSetLiveAndBadOnesRefused) {
  ModuleHarness rewrite("rewrite", with({field("l2", 0, 1, 9)}));
  rewrite.command("set", Dict{{"fields", List{field("l2", 1, 1, 8)}}});
  EXPECT_EQ(rewrite.run({make_frame()}).at(0)[0][1], 8);
  Dict outside = field("l2", 0, 1, "0xff");
  outside["mask"] = "0x0f";
  for (const Value& bad :
       {Value(List{}), Value(List{outside}), Value(List{field("l5", 0, 1, 1)}),
        Value(List{field("l2", -1, 1, 1)}), Value(List{field("l2", 0, 9, 1)}),
        Value(List{field("l2", 0, 1, 256)}), Value(List{Dict{{"offset", 0}, {"size_bytes", 1}}}),
        Value(List(17, field("l2", 0, 1, 1))), Value(7)}) {
    EXPECT_NE(refusal([&] { rewrite.command("set", Dict{{"fields", bad}}); }), "");
  }
  EXPECT_EQ(rewrite.run({make_frame()}).at(0)[0][1], 8);
  EXPECT_EQ(rewrite.module().saved_params().at("fields").as_list().size(), 1U);
}

}  // namespace
}  // namespace batchplane
