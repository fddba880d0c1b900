// SPDX-License-Identifier: BSD-3-Clause
// gather.cl - copies a batch's inputs from this machine's memory, which the device reads directly, into the
// device's own: 32 work items an input.

#define LANES 32
#define UNIT_WORDS 4                     // a load has 16 bytes
#define PIECE_UNITS (4 * LANES)          // of an input at once
#define PIECE_WORDS (PIECE_UNITS * UNIT_WORDS)

// `from`: where each input begins, at any byte; whole units around it are read.
__kernel void gather(__global uint* bytes, __global const uint2* places, uint n,
                     __global const ulong* from) {
  // Inputs seldom begin at a unit, so a piece may reach into one unit more.
  __local uint piece[PIECE_WORDS + UNIT_WORDS];
  const uint lane = get_local_id(0), item = get_group_id(0);
  const ulong address = from[item];
  const uint shift_bytes = (uint)(address & 15);
  const uint n_words = (places[item].y + 3) / 4;
  const uint n_units = (shift_bytes + places[item].y + 15) / 16;
  __global const uint4* units = (__global const uint4*)(address - shift_bytes);
  __global uint* to = bytes + places[item].x / 4;

  for (uint word = 0; word < n_words; word += PIECE_WORDS) {
    // A load takes a microsecond or more, so all are under way before the first one is used.
    uint4 loaded[PIECE_UNITS / LANES + 1];
    const uint first = word / UNIT_WORDS;
#pragma unroll
    for (uint k = 0; k <= PIECE_UNITS / LANES; ++k) {
      const uint u = k * LANES + lane;
      if (u <= PIECE_UNITS && first + u < n_units) loaded[k] = units[first + u];
    }
#pragma unroll
    for (uint k = 0; k <= PIECE_UNITS / LANES; ++k) {
      const uint u = k * LANES + lane;
      if (u > PIECE_UNITS || first + u >= n_units) continue;
      __local uint* const unit = piece + UNIT_WORDS * u;
      unit[0] = loaded[k].x, unit[1] = loaded[k].y, unit[2] = loaded[k].z, unit[3] = loaded[k].w;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint n_here = n_words - word < PIECE_WORDS ? n_words - word : PIECE_WORDS;
    for (uint w = lane; w < n_here; w += LANES) {
      const uint at = w + shift_bytes / 4, shift = 8 * (shift_bytes % 4);
      const ulong two = (ulong)piece[at + 1] << 32 | piece[at];
      to[word + w] = (uint)(two >> shift);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
