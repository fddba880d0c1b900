// SPDX-License-Identifier: BSD-3-Clause
// digest.cl - MD5 (RFC 1321), SHA-1 and SHA-256 (FIPS 180-4): a text a work item, on any OpenCL device with
// the byte order of x86. A result has 32 bytes, the last of them zero where the digest is shorter.

// Rounds are unrolled, so that a block's words are registers.
#define RESULT_WORDS 8

// Word `w` of a text with its padding, in the order of its bytes; the length that follows is left out.
inline uint padded_word(__global const uint* text, uint n_bytes, uint w) {
  const uint at = 4 * w;
  if (at + 4 <= n_bytes) return text[w];
  if (at > n_bytes) return 0;
  const uint n_left = n_bytes - at;
  return n_left == 0 ? 0x80 : (text[w] & ((1u << (8 * n_left)) - 1)) | 0x80u << (8 * n_left);
}

inline uint blocks_of(uint n_bytes) { return (n_bytes + 8) / 64 + 1; }

inline uint swapped(uint x) { return rotate(x, 8u) & 0x00ff00ff | rotate(x, 24u) & 0xff00ff00; }

inline void put(__global uint* result, const uint* words, uint n) {
  for (uint i = 0; i < RESULT_WORDS; ++i) result[i] = i < n ? words[i] : 0;
}

// floor(2^32 |sin(i + 1)|)
__constant uint kSines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
__constant uint kShifts[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

__kernel void md5(__global const uint* bytes, __global const uint2* places, uint n,
                  __global uint* results) {
  const uint item = get_global_id(0);
  if (item >= n) return;
  const uint n_bytes = places[item].y;
  __global const uint* text = bytes + places[item].x / 4;
  const uint n_blocks = blocks_of(n_bytes);
  uint state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (uint block = 0; block < n_blocks; ++block) {
    uint words[16];
#pragma unroll
    for (uint i = 0; i < 16; ++i) words[i] = padded_word(text, n_bytes, 16 * block + i);
    if (block == n_blocks - 1) words[14] = n_bytes << 3, words[15] = n_bytes >> 29;
    uint a = state[0], b = state[1], c = state[2], d = state[3];
#pragma unroll
    for (uint i = 0; i < 64; ++i) {
      const uint round = i / 16;
      const uint f = round == 0   ? bitselect(d, c, b)
                     : round == 1 ? bitselect(c, b, d)
                     : round == 2 ? b ^ c ^ d
                                  : c ^ (b | ~d);
      const uint from = round == 0   ? i
                        : round == 1 ? 5 * i + 1
                        : round == 2 ? 3 * i + 5
                                     : 7 * i;
      const uint next =
          b + rotate(a + f + kSines[i] + words[from % 16], kShifts[4 * round + i % 4]);
      a = d, d = c, c = b, b = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
  }
  put(results + RESULT_WORDS * item, state, 4);
}

// Block `block` of a text as words of the SHA family.
inline void sha_block(__global const uint* text, uint n_bytes, uint block, uint* words) {
#pragma unroll
  for (uint i = 0; i < 16; ++i) words[i] = swapped(padded_word(text, n_bytes, 16 * block + i));
  if (block == blocks_of(n_bytes) - 1) words[14] = n_bytes >> 29, words[15] = n_bytes << 3;
}

__kernel void sha1(__global const uint* bytes, __global const uint2* places, uint n,
                   __global uint* results) {
  const uint item = get_global_id(0);
  if (item >= n) return;
  const uint n_bytes = places[item].y;
  __global const uint* text = bytes + places[item].x / 4;
  const uint n_blocks = blocks_of(n_bytes);
  uint state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  for (uint block = 0; block < n_blocks; ++block) {
    uint words[16];
    sha_block(text, n_bytes, block, words);
    uint a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
#pragma unroll
    for (uint i = 0; i < 80; ++i) {
      if (i >= 16) {
        words[i % 16] = rotate(
            words[(i + 13) % 16] ^ words[(i + 8) % 16] ^ words[(i + 2) % 16] ^ words[i % 16], 1u);
      }
      const uint f = i < 20 ? bitselect(d, c, b) + 0x5a827999
                     : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                     : i < 60 ? ((b & c) | (d & (b | c))) + 0x8f1bbcdc
                              : (b ^ c ^ d) + 0xca62c1d6;
      const uint next = rotate(a, 5u) + f + e + words[i % 16];
      e = d, d = c, c = rotate(b, 30u), b = a, a = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
  }
  for (uint i = 0; i < 5; ++i) state[i] = swapped(state[i]);
  put(results + RESULT_WORDS * item, state, 5);
}

__constant uint kRoots[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__kernel void sha256(__global const uint* bytes, __global const uint2* places, uint n,
                     __global uint* results) {
  const uint item = get_global_id(0);
  if (item >= n) return;
  const uint n_bytes = places[item].y;
  __global const uint* text = bytes + places[item].x / 4;
  const uint n_blocks = blocks_of(n_bytes);
  uint state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (uint block = 0; block < n_blocks; ++block) {
    uint words[16];
    uint s[8];
    sha_block(text, n_bytes, block, words);
    for (uint i = 0; i < 8; ++i) s[i] = state[i];
#pragma unroll
    for (uint i = 0; i < 64; ++i) {
      if (i >= 16) {
        const uint x = words[(i + 1) % 16];
        const uint y = words[(i + 14) % 16];
        words[i % 16] += words[(i + 9) % 16] + (rotate(x, 25u) ^ rotate(x, 14u) ^ x >> 3) +
                         (rotate(y, 15u) ^ rotate(y, 13u) ^ y >> 10);
      }
      const uint sum1 = rotate(s[4], 26u) ^ rotate(s[4], 21u) ^ rotate(s[4], 7u);
      const uint sum0 = rotate(s[0], 30u) ^ rotate(s[0], 19u) ^ rotate(s[0], 10u);
      const uint first = s[7] + sum1 + bitselect(s[6], s[5], s[4]) + kRoots[i] + words[i % 16];
      const uint second = sum0 + ((s[0] & s[1]) | (s[2] & (s[0] | s[1])));
      s[7] = s[6], s[6] = s[5], s[5] = s[4], s[4] = s[3] + first;
      s[3] = s[2], s[2] = s[1], s[1] = s[0], s[0] = first + second;
    }
    for (uint i = 0; i < 8; ++i) state[i] += s[i];
  }
  for (uint i = 0; i < 8; ++i) state[i] = swapped(state[i]);
  put(results + RESULT_WORDS * item, state, 8);
}
