// SPDX-License-Identifier: BSD-3-Clause
// digest_md5.cc - vectorised MD5 rounds, and the assignment of texts to lanes.
#include "modules/inspect/digest_md5.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace batchplane::inspect {
namespace {

constexpr uint32_t kBlockBytes = 64;
constexpr uint32_t kWords = 16;                // per block
constexpr uint8_t kNothing[kBlockBytes] = {};  // read by lanes that have no text
constexpr uint32_t kStart[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};

// The sines of RFC 1321, 3.4.
constexpr uint32_t kSines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

// Index of the message word that a step uses.
constexpr uint32_t word_of(uint32_t step) {
  switch (step / 16) {
    case 0:
      return step;
    case 1:
      return (5 * step + 1) % 16;
    case 2:
      return (3 * step + 5) % 16;
    default:
      return 7 * step % 16;
  }
}

// Each lane processes the whole blocks of its text, then one or two tail blocks that end with the
// text's length.
template <uint32_t kLanes>
struct Lanes {
  alignas(64) uint32_t state[4][kLanes];
  const uint8_t* at[kLanes];
  uint32_t left_blocks[kLanes] = {};  // in the part that `at` points into
  uint32_t tail_blocks[kLanes] = {};  // not yet started
  uint32_t index[kLanes] = {};
  bool is_busy[kLanes] = {};
  uint8_t tails[kLanes][2 * kBlockBytes];

  Lanes() { std::fill_n(at, kLanes, kNothing); }
  void take(uint32_t l, const Text& text, uint32_t text_index) {
    for (uint32_t s = 0; s < 4; ++s) state[s][l] = kStart[s];
    const uint32_t rest_bytes = text.len_bytes % kBlockBytes;
    tail_blocks[l] = rest_bytes + 1 + sizeof(uint64_t) > kBlockBytes ? 2 : 1;
    uint8_t* const tail = tails[l];
    if (rest_bytes != 0) std::memcpy(tail, text.data + text.len_bytes - rest_bytes, rest_bytes);
    const uint32_t tail_bytes = tail_blocks[l] * kBlockBytes;
    std::memset(tail + rest_bytes, 0, tail_bytes - rest_bytes);
    tail[rest_bytes] = 0x80;
    const uint64_t n_bits = uint64_t{text.len_bytes} * 8;
    std::memcpy(tail + tail_bytes - sizeof n_bits, &n_bits, sizeof n_bits);
    at[l] = text.data;
    left_blocks[l] = text.len_bytes / kBlockBytes;
    index[l] = text_index;
    is_busy[l] = true;
    settle(l);
  }
  // Moves on from the text to its tail when the text is done; returns false when the tail is done,
  // too.
  bool settle(uint32_t l) {
    if (left_blocks[l] != 0) return true;
    if (tail_blocks[l] == 0) return false;
    at[l] = tails[l];
    left_blocks[l] = tail_blocks[l];
    tail_blocks[l] = 0;
    return true;
  }
  void put_out(uint32_t l, uint8_t* digest) {
    for (uint32_t s = 0; s < 4; ++s)
      std::memcpy(digest + s * sizeof(uint32_t), &state[s][l], sizeof(uint32_t));
    is_busy[l] = false;
    at[l] = kNothing;
  }
};

// Assigns texts to lanes as they become free, and returns when all are done.
template <uint32_t kLanes>
void run(void (*add_block)(const uint8_t* const*, uint32_t (*)[kLanes]), const Text* texts,
         uint32_t n, uint8_t* digests, uint32_t stride_bytes) {
  Lanes<kLanes> lanes;
  uint32_t next = 0;
  for (;;) {
    uint32_t n_blocks = ~0U;
    for (uint32_t l = 0; l < kLanes; ++l) {
      if (!lanes.is_busy[l] && next < n) {
        lanes.take(l, texts[next], next);
        ++next;
      }
      if (lanes.is_busy[l]) n_blocks = std::min(n_blocks, lanes.left_blocks[l]);
    }
    if (n_blocks == ~0U) return;
    for (uint32_t b = 0; b < n_blocks; ++b) {
      add_block(lanes.at, lanes.state);
      for (uint32_t l = 0; l < kLanes; ++l) lanes.at[l] += lanes.is_busy[l] ? kBlockBytes : 0;
    }
    for (uint32_t l = 0; l < kLanes; ++l) {
      if (!lanes.is_busy[l]) continue;
      lanes.left_blocks[l] -= n_blocks;
      if (!lanes.settle(l)) lanes.put_out(l, digests + size_t{lanes.index[l]} * stride_bytes);
    }
  }
}

namespace avx2 {
#define BP_MD5_TARGET __attribute__((target("avx2")))
struct Isa {
  static constexpr uint32_t kLanes = 8;
  using V = __m256i;

  BP_MD5_TARGET static V set(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  BP_MD5_TARGET static V add(V a, V b) { return _mm256_add_epi32(a, b); }
  template <int kBits>
  BP_MD5_TARGET static V rotate(V a) {
    return _mm256_or_si256(_mm256_slli_epi32(a, kBits), _mm256_srli_epi32(a, 32 - kBits));
  }
  template <uint32_t kRound>
  BP_MD5_TARGET static V mix(V b, V c, V d) {
    if constexpr (kRound == 0) {  // b ? c : d
      return _mm256_xor_si256(d, _mm256_and_si256(b, _mm256_xor_si256(c, d)));
    } else if constexpr (kRound == 1) {  // d ? b : c
      return _mm256_xor_si256(c, _mm256_and_si256(d, _mm256_xor_si256(b, c)));
    } else if constexpr (kRound == 2) {
      return _mm256_xor_si256(b, _mm256_xor_si256(c, d));
    } else {
      const V not_d = _mm256_xor_si256(d, _mm256_set1_epi32(-1));
      return _mm256_xor_si256(c, _mm256_or_si256(b, not_d));
    }
  }
  // words[w]: word w of each lane's block.
  BP_MD5_TARGET static void load(const uint8_t* const* blocks, V* words) {
    for (uint32_t half = 0; half < 2; ++half) {
      V rows[kLanes];
      for (uint32_t l = 0; l < kLanes; ++l) {
        rows[l] = _mm256_loadu_si256(reinterpret_cast<const V*>(blocks[l] + half * sizeof(V)));
      }
      transpose(rows, words + half * kLanes);
    }
  }
  BP_MD5_TARGET static void transpose(const V* r, V* out) {
    V t[8];
    V u[8];
    for (uint32_t i = 0; i < 4; ++i) {
      t[2 * i] = _mm256_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
      t[2 * i + 1] = _mm256_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    for (uint32_t i = 0; i < 2; ++i) {
      for (uint32_t k = 0; k < 2; ++k) {
        u[4 * i + 2 * k] = _mm256_unpacklo_epi64(t[4 * i + k], t[4 * i + k + 2]);
        u[4 * i + 2 * k + 1] = _mm256_unpackhi_epi64(t[4 * i + k], t[4 * i + k + 2]);
      }
    }
    for (uint32_t i = 0; i < 4; ++i) {
      out[i] = _mm256_permute2x128_si256(u[i], u[i + 4], 0x20);
      out[i + 4] = _mm256_permute2x128_si256(u[i], u[i + 4], 0x31);
    }
  }
};

#include "modules/inspect/digest_md5_rounds.inl"
#undef BP_MD5_TARGET
}  // namespace avx2

// Uses the masked forms with a full mask: g++ 12 warns about uninitialised values in the unmasked
// ones.
namespace avx512 {
constexpr __mmask16 kAll = 0xffff;
constexpr __mmask8 kAll8 = 0xff;
#define BP_MD5_TARGET __attribute__((target("avx512f")))
struct Isa {
  static constexpr uint32_t kLanes = 16;
  using V = __m512i;

  BP_MD5_TARGET static V set(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  BP_MD5_TARGET static V add(V a, V b) { return _mm512_add_epi32(a, b); }
  template <int kBits>
  BP_MD5_TARGET static V rotate(V a) {
    return _mm512_maskz_rol_epi32(kAll, a, kBits);
  }
  // Truth table: bit i is the result for (b, c, d) read as the 3-bit number i.
  template <uint32_t kRound>
  BP_MD5_TARGET static V mix(V b, V c, V d) {
    constexpr int kTables[4] = {0xca, 0xe4, 0x96, 0x39};
    return _mm512_ternarylogic_epi32(b, c, d, kTables[kRound]);
  }
  BP_MD5_TARGET static void load(const uint8_t* const* blocks, V* words) {
    V t[kLanes];
    V u[kLanes];
    for (uint32_t i = 0; i < 8; ++i) {
      const V even = _mm512_loadu_si512(blocks[2 * i]);
      const V odd = _mm512_loadu_si512(blocks[2 * i + 1]);
      t[2 * i] = _mm512_maskz_unpacklo_epi32(kAll, even, odd);
      t[2 * i + 1] = _mm512_maskz_unpackhi_epi32(kAll, even, odd);
    }
    for (uint32_t i = 0; i < 4; ++i) {
      for (uint32_t k = 0; k < 2; ++k) {
        u[4 * i + 2 * k] = _mm512_maskz_unpacklo_epi64(kAll8, t[4 * i + k], t[4 * i + k + 2]);
        u[4 * i + 2 * k + 1] = _mm512_maskz_unpackhi_epi64(kAll8, t[4 * i + k], t[4 * i + k + 2]);
      }
    }
    // u[4i + k] has word k, k + 4, k + 8, k + 12 of lanes 4i to 4i + 3.
    for (uint32_t k = 0; k < 4; ++k) {
      const V low01 = _mm512_maskz_shuffle_i32x4(kAll, u[k], u[4 + k], 0x88);
      const V high01 = _mm512_maskz_shuffle_i32x4(kAll, u[k], u[4 + k], 0xdd);
      const V low23 = _mm512_maskz_shuffle_i32x4(kAll, u[8 + k], u[12 + k], 0x88);
      const V high23 = _mm512_maskz_shuffle_i32x4(kAll, u[8 + k], u[12 + k], 0xdd);
      words[k] = _mm512_maskz_shuffle_i32x4(kAll, low01, low23, 0x88);
      words[8 + k] = _mm512_maskz_shuffle_i32x4(kAll, low01, low23, 0xdd);
      words[4 + k] = _mm512_maskz_shuffle_i32x4(kAll, high01, high23, 0x88);
      words[12 + k] = _mm512_maskz_shuffle_i32x4(kAll, high01, high23, 0xdd);
    }
  }
};

#include "modules/inspect/digest_md5_rounds.inl"
#undef BP_MD5_TARGET
}  // namespace avx512

}  // namespace

bool has_md5_code(Md5Code code) noexcept {
  return code == Md5Code::kAvx2 || __builtin_cpu_supports("avx512f") != 0;
}

void md5_by(Md5Code code, const Text* texts, uint32_t n, uint8_t* digests,
            uint32_t stride_bytes) noexcept {
  if (code == Md5Code::kAvx512) {
    avx512::md5_of(texts, n, digests, stride_bytes);
  } else {
    avx2::md5_of(texts, n, digests, stride_bytes);
  }
}

void md5(const Text* texts, uint32_t n, uint8_t* digests, uint32_t stride_bytes) noexcept {
  static const Md5Code kBest = has_md5_code(Md5Code::kAvx512) ? Md5Code::kAvx512 : Md5Code::kAvx2;
  md5_by(kBest, texts, n, digests, stride_bytes);
}

}  // namespace batchplane::inspect
