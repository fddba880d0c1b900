// SPDX-License-Identifier: BSD-3-Clause
// number.cl - what the module of stage_test_util.h has devices compute: a packet's number, and its length and
// what the table adds.

__kernel void number(__global const uint* bytes, __global const uint2* places, uint n,
                     __global uint* results, __global const uint* table) {
  const uint i = get_global_id(0);
  if (i >= n) return;
  results[2 * i] = places[i].y < 4 ? 0 : bytes[places[i].x / 4];
  results[2 * i + 1] = places[i].y + table[0];
}
