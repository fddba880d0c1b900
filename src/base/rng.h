// SPDX-License-Identifier: BSD-3-Clause
// rng.h - a small seeded generator (xoshiro256**, Blackman and Vigna 2018): the same seed gives the same
// sequence on every machine.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace batchplane {

class Rng {
 public:
  explicit Rng(uint64_t seed) {
    for (uint64_t& word : state_) word = splitmix(seed);
  }

  uint64_t next() {
    const uint64_t result = rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound); bound >= 1. Multiplicative, bias below bound / 2^32.
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(((next() >> 32) * bound) >> 32); }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // Exponential with the given mean, in the same unit. Integer arithmetic up to the last product, because the
  // C library's logarithm differs between machines. Error below 2e-7 of the mean.
  double exponential(double mean) {
    constexpr double kLn2 = 0.6931471805599453;
    return static_cast<double>(minus_log2(next() | 1)) * (kLn2 * 0x1.0p-40) * mean;
  }

 private:
  static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  static uint64_t splitmix(uint64_t& x) {
    uint64_t z = (x += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // log2(1 + i / 1024) * 2^40, computed bit by bit: squaring doubles a logarithm.
  static constexpr std::array<uint64_t, 1025> make_log2_table() {
    std::array<uint64_t, 1025> table = {};
    for (uint64_t i = 0; i < 1024; ++i) {
      uint64_t y = (1024 + i) << 52;  // 1..2 as 2^62..2^63
      for (int bit = 39; bit >= 0; --bit) {
        y = static_cast<uint64_t>((static_cast<unsigned __int128>(y) * y) >> 62);
        if (y >> 63 != 0) {
          y >>= 1;
          table[i] |= 1ULL << bit;
        }
      }
    }
    table[1024] = 1ULL << 40;
    return table;
  }
  // 64 - log2(x), times 2^40; x >= 1.
  static uint64_t minus_log2(uint64_t x) {
    static constexpr std::array<uint64_t, 1025> kLog2 = make_log2_table();
    const int zeros = std::countl_zero(x);
    const uint64_t fraction = zeros == 63 ? 0 : x << (zeros + 1);
    const uint64_t i = fraction >> 54;
    const uint64_t rest = (fraction >> 22) & 0xffffffffU;
    const uint64_t log2 = kLog2[i] + (((kLog2[i + 1] - kLog2[i]) * rest) >> 32);
    return (static_cast<uint64_t>(zeros + 1) << 40) - log2;
  }

  uint64_t state_[4];
};

}  // namespace batchplane
