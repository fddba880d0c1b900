// SPDX-License-Identifier: BSD-3-Clause
// set_hash.h - sets of flows or modules, told apart by one number.
#pragma once

#include <cstdint>

namespace batchplane::slo {

// Sums of these are different for different sets, as good as surely.
inline uint64_t mixed_bits(uint64_t number) {
  number *= 0x9e3779b97f4a7c15ULL;
  number ^= number >> 32;
  number *= 0xd6e8feb86659fd93ULL;
  return number ^ (number >> 32);
}

}  // namespace batchplane::slo
