// SPDX-License-Identifier: BSD-3-Clause
// dpi.cl - the automaton of dpi_automaton.h over a text, a chunk a work item, to the first place where a literal
// may end, or to the text's end. A result is how many bytes that took, and the table's entry there.

#define LANES 32
#define LEAST_CHUNK 32
#define HAS_OUTPUT (1u << 31)
#define LONGEST_WORD 64  // behind the class of each byte: how long the longest literal is
#define ROWS_WORD 65     // rows by state
#define WORDS_EACH 6     // of a text, which comes from afar on a GPU, read by a work item at once
#define KEPT_WORDS (3 * WORDS_EACH * LANES)

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void dpi(
    __global const uint* restrict bytes, __global const uint2* restrict places, uint n,
    __global uint* restrict results, __global const uint* restrict table) {
  __local uint ends[LANES], entries[LANES], kept[KEPT_WORDS];
  const uint item = get_group_id(0), lane = get_local_id(0);
  const uint n_bytes = places[item].y, n_words = (n_bytes + 3) / 4;
  __global const uint* words = bytes + places[item].x / 4;
  __global const uchar* class_of = (__global const uchar*)table;
  __global const uint* rows = table + ROWS_WORD;

  for (uint word = lane; word < min(n_words, (uint)KEPT_WORDS); word += WORDS_EACH * LANES) {
    uint read[WORDS_EACH];
#pragma unroll
    for (uint k = 0; k < WORDS_EACH; ++k)
      if (word + k * LANES < n_words) read[k] = words[word + k * LANES];
#pragma unroll
    for (uint k = 0; k < WORDS_EACH; ++k)
      if (word + k * LANES < n_words) kept[word + k * LANES] = read[k];
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  // A state is the longest end of what was read that is a literal's beginning, so no longer than the longest literal:
  // who begins one byte less than that before its chunk is in the right state from its chunk's first byte on. A
  // literal that ends before is found by the chunk where it ends, too, and the first chunk with one counts.
  const uint n_before = max(table[LONGEST_WORD], 1u) - 1;
  const uint least = max((n_bytes + LANES - 1) / LANES, max(n_before, (uint)LEAST_CHUNK));
  const uint chunk = (least + 3) / 4 * 4 | 4;  // an odd number of words, so that work items read from different banks
  const uint begin = lane * chunk;
  const uint end = begin < n_bytes ? min(begin + chunk, n_bytes) : 0;
  uint at = begin > n_before ? (begin - n_before) & ~3u : 0;
  uint entry = 0;
  while (at < end && (entry & HAS_OUTPUT) == 0) {
    const uint word = at < 4 * KEPT_WORDS ? kept[at / 4] : words[at / 4];
    uint classes[4];
#pragma unroll
    for (uint k = 0; k < 4; ++k) classes[k] = class_of[word >> 8 * k & 0xff];
    // Without branches, so that the classes are waited for together.
    const uint before_end = end - at;
#pragma unroll
    for (uint k = 0; k < 4; ++k) {
      const uint next = rows[(entry & ~HAS_OUTPUT) + classes[k]];
      const bool goes_on = k < before_end && (entry & HAS_OUTPUT) == 0;
      entry = goes_on ? next : entry;
      at += goes_on ? 1 : 0;
    }
  }
  ends[lane] = at, entries[lane] = entry;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane == 0) {
    uint first = 0;
    while ((first + 1) * chunk < n_bytes && (entries[first] & HAS_OUTPUT) == 0) ++first;
    results[2 * item] = ends[first];
    results[2 * item + 1] = entries[first];
  }
}
