// SPDX-License-Identifier: BSD-3-Clause
// scatter.h - distributes a batch to the queues behind its gates, one gate per packet.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>

#include "exec/node.h"

namespace batchplane::exec {

inline constexpr uint32_t kBitmapGates = 64;  // touched gates fit one word
inline constexpr uint32_t kVectorGates =
    4;  // with more gates, scalar appends are faster (bench/micro/scatter)

// True when gates[0..n) are all equal; n >= 1. Reads up to 31 entries past n, for which the context has
// slack.
inline bool all_gates_equal(const GateIndex* gates, uint32_t n) {
  const __m256i first = _mm256_set1_epi16(static_cast<int16_t>(gates[0]));
  for (uint32_t i = 0; i < n; i += 16) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(gates + i));
    auto equal = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi16(v, first)));
    if (n - i < 16) equal |= ~0U << (2 * (n - i));
    if (equal != ~0U) return false;
  }
  return true;
}

// Appends each packet to its target; returns the bitmap of gates touched. Gates must be < 64.
template <class Handle>
inline uint64_t scatter_scalar(const Handle* pkts, const GateIndex* gates, uint32_t n,
                               Queue<Handle>* const* targets) {
  uint64_t touched = 0;
  for (uint32_t i = 0; i < n; ++i) {
    Queue<Handle>& queue = *targets[gates[i]];
    queue.pkts[queue.size_pkts++] = pkts[i];
    touched |= 1ULL << gates[i];
  }
  return touched;
}

// The same with AVX-512: per distinct gate, one comparison of 32 gates and four compressions of 8
// pointers. Pays while distinct gates are few (bench/micro/scatter); queues have 8 slots of slack.
template <class Handle>
__attribute__((target("avx512f,avx512bw,avx512vl"))) inline uint64_t scatter_avx512(
    const Handle* pkts, const GateIndex* gates, uint32_t n, Queue<Handle>* const* targets) {
  static_assert(sizeof(Handle) == 8);
  uint64_t touched = 0;
  for (uint32_t base = 0; base < n; base += 32) {
    const uint32_t count = n - base < 32 ? n - base : 32;
    uint32_t left = count == 32 ? ~0U : (1U << count) - 1;
    const __m512i gate_v = _mm512_loadu_si512(gates + base);
    while (left != 0) {
      const GateIndex gate = gates[base + static_cast<uint32_t>(std::countr_zero(left))];
      const uint32_t mask =
          left & _mm512_cmpeq_epi16_mask(gate_v, _mm512_set1_epi16(static_cast<int16_t>(gate)));
      Queue<Handle>& queue = *targets[gate];
      Handle* out = queue.pkts + queue.size_pkts;
      for (uint32_t part = 0; part < 4; ++part) {
        const auto lanes = static_cast<__mmask8>(mask >> (8 * part));
        if (lanes == 0) continue;
        const __m512i v = _mm512_maskz_loadu_epi64(lanes, pkts + base + 8 * part);
        _mm512_storeu_si512(out, _mm512_maskz_compress_epi64(lanes, v));
        out += std::popcount(static_cast<uint8_t>(lanes));
      }
      queue.size_pkts += static_cast<uint32_t>(std::popcount(mask));
      touched |= 1ULL << gate;
      left &= ~mask;
    }
  }
  return touched;
}

// Whether the CPU has AVX-512, it pays off, and packet order is kept: vector code handles gate after gate, so
// with one queue behind two gates packets would overtake each other.
template <class Node>
bool may_scatter_by_vector(const Node& node) {
  const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0;
  if (!has_avx512 || node.n_gates > kVectorGates) return false;
  for (uint32_t a = 0; a < node.n_gates; ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      if (node.targets[a] == node.targets[b]) return false;
    }
  }
  return true;
}

// For any number of gates: writes each touched gate once to `list` (n entries), in order of its first packet.
template <class Handle>
inline uint32_t scatter_wide(const Handle* pkts, const GateIndex* gates, uint32_t n,
                             Queue<Handle>* const* targets, GateIndex* list) {
  uint32_t n_touched = 0;
  for (uint32_t i = 0; i < n; ++i) {
    Queue<Handle>& queue = *targets[gates[i]];
    if (queue.size_pkts == queue.seen_pkts) list[n_touched++] = gates[i];
    queue.pkts[queue.size_pkts++] = pkts[i];
  }
  return n_touched;
}

}  // namespace batchplane::exec
