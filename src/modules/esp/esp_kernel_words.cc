// SPDX-License-Identifier: BSD-3-Clause
// esp_kernel_words.cc - the AES S-box and round keys (FIPS 197), and powers of the GHASH key and multiples
// of the highest (NIST SP 800-38D). Control thread.
#include "modules/esp/esp_kernel_words.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/net.h"

namespace batchplane::esp {
namespace {

constexpr uint32_t kGcmSaltBytes = 4;
// Layout as in esp_gcm.cl.
constexpr uint32_t kSaCountWord = 256;
constexpr uint32_t kFirstSaWord = 260;
constexpr uint32_t kSaWords = 1216;
constexpr uint32_t kKeysWord = 4;
constexpr uint32_t kPowersWord = 64;
constexpr uint32_t kProductsWord = 192;
static_assert(kProductsWord == kPowersWord + 4 * kGcmLanes);

constexpr uint8_t doubled(uint8_t x) { return static_cast<uint8_t>(x << 1 ^ (x >> 7) * 0x1b); }

// Each element but 0 is a power of 3; the inverse of 3^i is 3^(255 - i).
constexpr std::array<uint8_t, 256> make_sbox() {
  std::array<uint8_t, 256> power{};
  uint8_t x = 1;
  for (uint8_t& at : power) {
    at = x;
    x = static_cast<uint8_t>(x ^ doubled(x));
  }
  std::array<uint8_t, 256> sbox{};
  sbox[0] = 0x63;
  for (uint32_t i = 0; i < 255; ++i) {
    const uint8_t inverse = power[(255 - i) % 255];
    uint8_t sum = 0x63;
    for (int turn = 0; turn < 5; ++turn) sum ^= std::rotl(inverse, turn);
    sbox[power[i]] = sum;
  }
  return sbox;
}
constexpr std::array<uint8_t, 256> kSbox = make_sbox();
static_assert(kSbox[0x53] == 0xed && kSbox[0xff] == 0x16);

constexpr uint32_t mixed(uint8_t byte) {
  const uint32_t s = kSbox[byte];
  const uint32_t twice = doubled(kSbox[byte]);
  return twice << 24 | s << 16 | s << 8 | (twice ^ s);
}

uint32_t substituted(uint32_t word) {
  return static_cast<uint32_t>(kSbox[word >> 24]) << 24 | kSbox[word >> 16 & 255] << 16 |
         kSbox[word >> 8 & 255] << 8 | kSbox[word & 255];
}

// Round keys for `n_rounds` rounds and the initial one.
void expand_key(std::span<const uint8_t> key, uint32_t n_rounds, uint32_t* keys) {
  const auto n_words = std::max<uint32_t>(4, static_cast<uint32_t>(key.size() / sizeof(uint32_t)));
  for (uint32_t i = 0; i < n_words; ++i) keys[i] = net::load32(&key[i * sizeof(uint32_t)]);
  uint8_t constant = 1;
  for (uint32_t i = n_words; i < 4 * (n_rounds + 1); ++i) {
    uint32_t word = keys[i - 1];
    if (i % n_words == 0) {
      word = substituted(std::rotl(word, 8)) ^ static_cast<uint32_t>(constant) << 24;
      constant = doubled(constant);
    } else if (n_words > 6 && i % n_words == 4) {
      word = substituted(word);
    }
    keys[i] = keys[i - n_words] ^ word;
  }
}

// The GHASH key: AES of a zero block.
void write_hash_key(const uint32_t* keys, uint32_t n_rounds, uint32_t* x) {
  for (uint32_t i = 0; i < 4; ++i) x[i] = keys[i];
  for (uint32_t round = 1; round <= n_rounds; ++round) {
    uint32_t next[4];
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row[] = {x[i] >> 24, x[(i + 1) % 4] >> 16 & 255, x[(i + 2) % 4] >> 8 & 255,
                              x[(i + 3) % 4] & 255};
      next[i] = keys[4 * round + i];
      for (int r = 0; r < 4; ++r) {
        const auto byte = static_cast<uint8_t>(row[r]);
        next[i] ^= round == n_rounds ? static_cast<uint32_t>(kSbox[byte]) << (24 - 8 * r)
                                     : std::rotr(mixed(byte), 8 * r);
      }
    }
    for (uint32_t i = 0; i < 4; ++i) x[i] = next[i];
  }
}

// GHASH bit order: the highest bit of a byte stands for 1, the next one for x.
void multiply_by_x(uint32_t* k) {
  const uint32_t out = k[3] & 1;
  k[3] = k[3] >> 1 | k[2] << 31;
  k[2] = k[2] >> 1 | k[1] << 31;
  k[1] = k[1] >> 1 | k[0] << 31;
  k[0] = k[0] >> 1 ^ out * 0xe1000000;
}

// powers[4 * i]: the power i + 1 of the first, which is there.
void write_powers(uint32_t* powers) {
  uint32_t k[4];
  for (uint32_t at = 4; at < 4 * kGcmLanes; at += 4) {
    std::copy_n(powers, 4, k);
    for (uint32_t bit = 0; bit < 128; ++bit) {
      const uint32_t is_set = powers[at - 4 + bit / 32] >> (31 - bit % 32) & 1;
      for (uint32_t i = 0; i < 4; ++i) powers[at + i] ^= is_set * k[i];
      multiply_by_x(k);
    }
  }
  explicit_bzero(k, sizeof k);
}

// All bytes times `factor`.
void write_products(const uint32_t* factor, uint32_t* products) {
  uint32_t k[4];
  std::copy_n(factor, 4, k);
  for (uint32_t bit = 128; bit != 0; bit >>= 1) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      for (uint32_t i = 0; (byte & bit) != 0 && i < 4; ++i) products[4 * byte + i] ^= k[i];
    }
    multiply_by_x(k);
  }
  explicit_bzero(k, sizeof k);
}

void write_sa(const GcmKey& from, uint32_t* sa) {
  const size_t n_bytes = from.key_and_salt.size() - kGcmSaltBytes;
  const auto n_rounds = static_cast<uint32_t>(n_bytes / sizeof(uint32_t)) + 6;
  sa[0] = n_rounds;
  sa[1] = net::load32(&from.key_and_salt[n_bytes]);
  sa[2] = from.has_esn ? 1 : 0;
  expand_key(from.key_and_salt.first(n_bytes), n_rounds, sa + kKeysWord);
  uint32_t* const powers = sa + kPowersWord;
  write_hash_key(sa + kKeysWord, n_rounds, powers);
  write_powers(powers);
  write_products(powers + 4 * (kGcmLanes - 1), sa + kProductsWord);
}

}  // namespace

std::vector<uint32_t> gcm_words(std::span<const GcmKey> keys) {
  std::vector<uint32_t> words(kFirstSaWord + keys.size() * kSaWords);
  for (uint32_t byte = 0; byte < 256; ++byte) words[byte] = mixed(static_cast<uint8_t>(byte));
  words[kSaCountWord] = static_cast<uint32_t>(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) write_sa(keys[i], &words[kFirstSaWord + i * kSaWords]);
  return words;
}

}  // namespace batchplane::esp
