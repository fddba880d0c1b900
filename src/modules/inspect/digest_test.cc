// SPDX-License-Identifier: BSD-3-Clause
// digest_test.cc - test vectors of RFC 1321 and FIPS 180, MD5 in all lanes against a scalar
// implementation, marks and live edits. The golden cases compare with another program.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/rng.h"
#include "module_harness.h"
#include "modules/inspect/digest_md5.h"

namespace batchplane {
namespace {

using inspect::Text;

std::string hex_of(const uint8_t* bytes, uint32_t n) {
  std::string text;
  for (uint32_t i = 0; i < n; ++i) {
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

// Scalar MD5, step by step as in RFC 1321.
std::string slow_md5(std::vector<uint8_t> text) {
  static constexpr int kShifts[4][4] = {
      {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  const uint64_t n_bits = text.size() * 8;
  text.push_back(0x80);
  while (text.size() % 64 != 56) text.push_back(0);
  for (uint32_t i = 0; i < 8; ++i) text.push_back(static_cast<uint8_t>(n_bits >> 8 * i));
  uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (size_t at = 0; at < text.size(); at += 64) {
    uint32_t words[16];
    std::memcpy(words, &text[at], sizeof words);
    auto [a, b, c, d] = std::array<uint32_t, 4>{state[0], state[1], state[2], state[3]};
    for (uint32_t i = 0; i < 64; ++i) {
      uint32_t f = 0;
      uint32_t g = 0;
      if (i < 16) f = (b & c) | (~b & d), g = i;
      if (i >= 16 && i < 32) f = (d & b) | (~d & c), g = (5 * i + 1) % 16;
      if (i >= 32 && i < 48) f = b ^ c ^ d, g = (3 * i + 5) % 16;
      if (i >= 48) f = c ^ (b | ~d), g = 7 * i % 16;
      const auto sine =
          static_cast<uint32_t>(std::floor(std::abs(std::sin(i + 1.0)) * 4294967296.0));
      const uint32_t next = b + std::rotl(a + f + sine + words[g], kShifts[i / 16][i % 4]);
      a = d, d = c, c = b, b = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
  }
  uint8_t bytes[16];
  std::memcpy(bytes, state, sizeof bytes);
  return hex_of(bytes, 16);
}

Text view_of(const std::vector<uint8_t>& text) {
  return {text.data(), static_cast<uint32_t>(text.size())};
}

TEST(Md5, KnownDigests) {
  const auto of = [](const std::string& text) {
    uint8_t digest[16];
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    const Text view = view_of(bytes);
    inspect::md5(&view, 1, digest, 16);
    return hex_of(digest, 16);
  };
  EXPECT_EQ(of(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(of("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(of("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Md5, AllLanesGiveWhatThePlainRoundsGive) {
  Rng rng(2);
  for (const auto code : {inspect::Md5Code::kAvx2, inspect::Md5Code::kAvx512}) {
    if (!inspect::has_md5_code(code)) continue;
    for (uint32_t round = 0; round < 60; ++round) {
      std::vector<std::vector<uint8_t>> texts(1 + rng.below(40));
      std::vector<Text> views;
      for (auto& text : texts) {
        text.resize(rng.below(round % 4 == 0 ? 1500 : 140));
        for (uint8_t& byte : text) byte = static_cast<uint8_t>(rng.next());
        views.push_back(view_of(text));
      }
      std::vector<uint8_t> digests(texts.size() * 20);
      inspect::md5_by(code, views.data(), static_cast<uint32_t>(views.size()), digests.data(), 20);
      for (size_t i = 0; i < texts.size(); ++i) {
        ASSERT_EQ(hex_of(&digests[i * 20], 16), slow_md5(texts[i])) << i;
      }
    }
  }
}

TEST(Digest, MarksAndChoosesGates) {
  Bytes frame = make_frame({.len_bytes = 45});
  std::copy_n("abc", 3, frame.begin() + 42);
  const std::string sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  ModuleHarness digest("digest", {{"rules", List{Dict{{"digest", sha256}, {"gate", 1}}}}}, 2);
  const Bytes other = make_frame({.len_bytes = 60});
  const Outcome outcome = digest.run({frame, other});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(outcome.outputs[0].mark, 0xba7816bfU);
  digest.command("delete", Dict{{"digest", sha256}});
  EXPECT_EQ(digest.run({frame}).gates(), std::vector<uint32_t>{0});
  digest.command("add", Dict{{"digest", sha256}, {"gate", 1}});
  EXPECT_EQ(digest.run({frame}).gates(), std::vector<uint32_t>{1});
  for (const char* const bad :
       {"", "ba78", "zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}) {
    EXPECT_THROW(digest.command("add", Dict{{"digest", bad}, {"gate", 1}}), ConfigError);
  }
}

}  // namespace
}  // namespace batchplane
