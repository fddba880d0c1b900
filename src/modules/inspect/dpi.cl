// SPDX-License-Identifier: BSD-3-Clause
// dpi.cl - the automaton of dpi_automaton.h: a text a work item, to the first place where a literal may end, or
// to the text's end. A result is how many bytes that took, and the table's entry there.

#define HAS_OUTPUT (1u << 31)
#define CLASS_WORDS 64  // the class of each byte, and then rows by state

__kernel void dpi(__global const uint* bytes, __global const uint2* places, uint n,
                  __global uint* results, __global const uint* table, __global uint* scratch) {
  const uint item = get_global_id(0);
  if (item >= n) return;
  const uint n_bytes = places[item].y;
  __global const uint* words = bytes + places[item].x / 4;
  __global const uchar* class_of = (__global const uchar*)table;
  __global const uint* rows = table + CLASS_WORDS;
  uint entry = 0, at = 0, word = 0;
  while (at < n_bytes && (entry & HAS_OUTPUT) == 0) {
    word = at % 4 == 0 ? words[at / 4] : word >> 8;
    entry = rows[entry + class_of[word & 0xff]];
    ++at;
  }
  results[2 * item] = at;
  results[2 * item + 1] = entry;
}
