// SPDX-License-Identifier: BSD-3-Clause
// rewrite_fields.h - the fields that a rewrite sets: their positions and values, and how they
// change checksums.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "base/value.h"
#include "modules/headers/ipv4_header.h"

namespace batchplane::rewrite {

inline constexpr uint32_t kMaxFields = 16;

enum class Base : uint8_t { kL2, kL3, kL4 };

// Value and mask in memory byte order, in the low-order bytes.
struct Field {
  uint64_t value = 0;
  uint64_t mask = 0;
  uint16_t offset_bytes = 0;
  uint8_t size_bytes = 0;
  Base base = Base::kL2;
};

struct Program {
  uint32_t n = 0;
  bool needs_l4 = false;
  Field fields[kMaxFields];
};

// Parses [{offset, size_bytes, value, base, mask}]; throws ConfigError below `where`.
[[nodiscard]] Program parse_fields(const List& list, const std::string& where);

inline uint64_t load_bytes(const uint8_t* p, uint32_t n) {
  uint64_t word = 0;
  std::memcpy(&word, p, n);
  return word;
}

inline uint64_t low_bytes(int32_t n) { return n >= 8 ? ~0ULL : (1ULL << 8 * n) - 1; }

// A mask of those bytes, of a field at `at`, that lie in [from, to).
inline uint64_t bytes_within(int32_t at, uint32_t size, int32_t from, int32_t to) {
  const int32_t low = from > at ? from - at : 0;
  const int32_t high = to - at < static_cast<int32_t>(size) ? to - at : static_cast<int32_t>(size);
  return low >= high ? 0 : low_bytes(high) & ~low_bytes(low);
}

// RFC 1624: the amount that a change adds to the one's complement of a checksum. A field at an odd
// offset has its bytes swapped within the 16-bit words of the sum.
inline uint32_t change_of(uint64_t before, uint64_t after, uint64_t mask, bool is_odd) {
  if (((before ^ after) & mask) == 0) return 0;
  const uint32_t change = fold16(add_with_carry(~(before & mask), after & mask));
  return is_odd ? (change << 8 | change >> 8) & 0xffff : change;
}

}  // namespace batchplane::rewrite
