// SPDX-License-Identifier: BSD-3-Clause
// esp_gcm.cl - ESP with AES-GCM (RFC 4106) over packets that lie in `bytes`: a packet a group, every 32nd block a
// work item, on any device with the byte order of x86. The table is that of esp_kernel_words.h. A result is one of
// those below, and 0.

#define WRONG_ICV 0
#define RIGHT 1
#define NOT_COMPUTED 2

#define LANES 32

// An input: which SA, how many bytes the body has, the sequence number's high half, 0; SPI, sequence number, IV;
// the body; the ICV.
#define HEAD_WORDS 4
#define BODY_WORD 8
#define ICV_WORDS 4

// The table: AES's S-box as words of the bytes 2s, s, s, 3s; how many SAs there are, and three words of nothing;
// SAs.
#define SA_COUNT_WORD 256
#define FIRST_SA_WORD 260
#define SA_WORDS 1216
// An SA: rounds, salt, whether numbers have 64 bits, 0; keys of rounds; the hash key's powers from the first to
// the 32nd; the last of them times each byte.
#define KEYS_WORD 4
#define POWERS_WORD 64
#define PRODUCTS_WORD 192

static inline uint swapped(uint x) {
  return (rotate(x, 8u) & 0x00ff00ff) | (rotate(x, 24u) & 0xff00ff00);
}

// Words of four, most significant byte first, as AES and GHASH have them.
static inline uint4 load_swapped(__global const uint* from) {
  uint4 x;
  x.x = swapped(from[0]), x.y = swapped(from[1]), x.z = swapped(from[2]), x.w = swapped(from[3]);
  return x;
}

static inline uint column(__global const uint* sbox, uint a, uint b, uint c, uint d) {
  return sbox[a >> 24] ^ rotate(sbox[(b >> 16) & 0xff], 24u) ^ rotate(sbox[(c >> 8) & 0xff], 16u) ^
         rotate(sbox[d & 0xff], 8u);
}
static inline uint last_column(__global const uint* sbox, uint a, uint b, uint c, uint d) {
  return ((sbox[a >> 24] << 8) & 0xff000000) | (sbox[(b >> 16) & 0xff] & 0x00ff0000) |
         (sbox[(c >> 8) & 0xff] & 0x0000ff00) | ((sbox[d & 0xff] >> 8) & 0x000000ff);
}

static inline uint4 aes(__global const uint* sbox, __global const uint* keys, uint n_rounds,
                        uint4 x) {
  x.x ^= keys[0], x.y ^= keys[1], x.z ^= keys[2], x.w ^= keys[3];
  for (uint round = 1; round < n_rounds; ++round) {
    uint4 next;
    keys += 4;
    next.x = column(sbox, x.x, x.y, x.z, x.w) ^ keys[0];
    next.y = column(sbox, x.y, x.z, x.w, x.x) ^ keys[1];
    next.z = column(sbox, x.z, x.w, x.x, x.y) ^ keys[2];
    next.w = column(sbox, x.w, x.x, x.y, x.z) ^ keys[3];
    x = next;
  }
  uint4 last;
  last.x = last_column(sbox, x.x, x.y, x.z, x.w) ^ keys[4];
  last.y = last_column(sbox, x.y, x.z, x.w, x.x) ^ keys[5];
  last.z = last_column(sbox, x.z, x.w, x.x, x.y) ^ keys[6];
  last.w = last_column(sbox, x.w, x.x, x.y, x.z) ^ keys[7];
  return last;
}

// GHASH's product of `y` and the hash key's 32nd power, a byte at a time from the last. What a shift by 8 pushes
// out, times x^128 = x^7 + x^2 + x + 1, is shorter than 16 bits.
static inline uint4 times_32nd_power(__global const uint4* products, uint4 y) {
  uint4 z = products[y.w & 0xff];
  for (uint i = 1; i < 16; ++i) {
    const uint out = z.w & 0xff;
    z.w = (z.w >> 8) | (z.z << 24);
    z.z = (z.z >> 8) | (z.y << 24);
    z.y = (z.y >> 8) | (z.x << 24);
    z.x = (z.x >> 8) ^ (out << 17) ^ (out << 22) ^ (out << 23) ^ (out << 24);
    const uint word = i < 4 ? y.w : i < 8 ? y.z : i < 12 ? y.y : y.x;
    z ^= products[(word >> (8 * (i % 4))) & 0xff];
  }
  return z;
}

// GHASH's product of any two, a bit of `y` at a time from the first.
static inline uint4 product(uint4 y, uint4 x) {
  uint4 z = (uint4)(0);
  for (uint w = 0; w < 4; ++w) {
    uint bits = w == 0 ? y.x : w == 1 ? y.y : w == 2 ? y.z : y.w;
    for (uint i = 0; i < 32; ++i, bits <<= 1) {
      z ^= x & (uint4)(0 - (bits >> 31));
      const uint out = 0 - (x.w & 1);
      x.w = (x.w >> 1) | (x.z << 31);
      x.z = (x.z >> 1) | (x.y << 31);
      x.y = (x.y >> 1) | (x.x << 31);
      x.x = (x.x >> 1) ^ (out & 0xe1000000);
    }
  }
  return z;
}

// A block of the body over itself, and what of it is hashed. `n_left`: words of the body from here on.
static inline uint4 crypt_block(__global uint* body, uint n_left, uint4 key_stream,
                                int is_encrypt) {
  const uint4 in = load_swapped(body);  // the last one may reach into the room of the ICV
  const uint4 out = in ^ key_stream;
  uint4 hashed = is_encrypt ? out : in;
  hashed.y = n_left > 1 ? hashed.y : 0;
  hashed.z = n_left > 2 ? hashed.z : 0;
  hashed.w = n_left > 3 ? hashed.w : 0;
  body[0] = swapped(out.x);
  if (n_left > 1) body[1] = swapped(out.y);
  if (n_left > 2) body[2] = swapped(out.z);
  if (n_left > 3) body[3] = swapped(out.w);
  return hashed;
}

// This work item's blocks of the body over themselves, and its part of the ICV, which is the sum of all parts. GHASH
// takes blocks of three kinds: what goes before the body, the body, and both lengths. The last is multiplied by the
// hash key, the one before it by its square, and so on. A work item has the block whose power of the hash key is one
// more than its number, and each 32nd before that: Horner's rule with the 32nd power, and then that one power.
static inline uint4 part_of_icv(__global uint* input, __global const uint* table,
                                __global const uint* sa, int is_encrypt, uint lane) {
  __global const uint* esp = input + HEAD_WORDS;
  __global uint* body = input + BODY_WORD;
  const uint n_words = input[1] / 4, has_esn = sa[2];
  const uint n_blocks = (n_words + 3) / 4 + 2;
  const uint first = (n_blocks + LANES - 1 - lane) % LANES;
  uint4 hash = (uint4)(0), mask = (uint4)(0);
  if (first >= n_blocks) return hash;
  for (uint block = first; block < n_blocks; block += LANES) {
    uint4 hashed = (uint4)(0);
    if (block + 1 == n_blocks) {
      hashed.y = has_esn ? 96 : 64, hashed.w = 32 * n_words;
    } else {
      uint4 counter;
      counter.x = sa[1], counter.y = swapped(esp[2]), counter.z = swapped(esp[3]);
      counter.w = block + 1;
      const uint4 key_stream = aes(table, sa + KEYS_WORD, sa[0], counter);
      if (block == 0) {
        const uint number = swapped(esp[1]);
        mask = key_stream;
        hashed.x = swapped(esp[0]);
        hashed.y = has_esn ? input[2] : number, hashed.z = has_esn ? number : 0;
      } else {
        const uint word = 4 * (block - 1);
        hashed = crypt_block(body + word, n_words - word, key_stream, is_encrypt);
      }
    }
    if (block != first) hash = times_32nd_power((__global const uint4*)(sa + PRODUCTS_WORD), hash);
    hash ^= hashed;
  }
  return product(hash, ((__global const uint4*)(sa + POWERS_WORD))[lane]) ^ mask;
}

// The packet's SA, or null where the input is none that this kernel knows.
static inline __global const uint* sa_of(__global const uint* input, uint n_bytes,
                                         __global const uint* table) {
  const uint own_bytes = 4 * (BODY_WORD + ICV_WORDS);
  if (n_bytes < own_bytes || input[0] >= table[SA_COUNT_WORD] || input[1] % 4 != 0 ||
      input[1] != n_bytes - own_bytes)
    return 0;
  return table + FIRST_SA_WORD + (ulong)input[0] * SA_WORDS;
}

static inline uint4 sum_of(__local const uint4* parts) {
  uint4 sum = parts[0];
  for (uint lane = 1; lane < LANES; ++lane) sum ^= parts[lane];
  return sum;
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void esp_encrypt(
    __global uint* bytes, __global const uint2* places, uint n, __global uint* results,
    __global const uint* table) {
  __local uint4 parts[LANES];
  const uint item = get_group_id(0), lane = get_local_id(0);
  __global uint* input = bytes + places[item].x / 4;
  __global const uint* sa = sa_of(input, places[item].y, table);
  parts[lane] = sa == 0 ? (uint4)(0) : part_of_icv(input, table, sa, 1, lane);
  // The ICV goes where the last block was read.
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (lane != 0) return;
  results[2 * item] = sa == 0 ? NOT_COMPUTED : RIGHT;
  results[2 * item + 1] = 0;
  if (sa == 0) return;
  const uint4 icv = sum_of(parts);
  __global uint* to = input + BODY_WORD + input[1] / 4;
  to[0] = swapped(icv.x), to[1] = swapped(icv.y), to[2] = swapped(icv.z), to[3] = swapped(icv.w);
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void esp_decrypt(
    __global uint* bytes, __global const uint2* places, uint n, __global uint* results,
    __global const uint* table) {
  __local uint4 parts[LANES];
  const uint item = get_group_id(0), lane = get_local_id(0);
  __global uint* input = bytes + places[item].x / 4;
  __global const uint* sa = sa_of(input, places[item].y, table);
  parts[lane] = sa == 0 ? (uint4)(0) : part_of_icv(input, table, sa, 0, lane);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane != 0) return;
  results[2 * item] = NOT_COMPUTED;
  results[2 * item + 1] = 0;
  if (sa == 0) return;
  const uint4 differs = sum_of(parts) ^ load_swapped(input + BODY_WORD + input[1] / 4);
  results[2 * item] =
      (differs.x | differs.y | differs.z | differs.w) == 0 ? RIGHT : WRONG_ICV;
}
