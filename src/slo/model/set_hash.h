// SPDX-License-Identifier: BSD-3-Clause
// set_hash.h - identifies a set of flows or modules by one number.
#pragma once

#include <cstdint>

namespace batchplane::slo {

// Sums of these numbers identify sets: collisions are practically impossible.
inline uint64_t mixed_bits(uint64_t number) {
  number *= 0x9e3779b97f4a7c15ULL;
  number ^= number >> 32;
  number *= 0xd6e8feb86659fd93ULL;
  return number ^ (number >> 32);
}

}  // namespace batchplane::slo
