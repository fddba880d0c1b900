// SPDX-License-Identifier: BSD-3-Clause
// match_fields.h - packet fields packed into a fixed-size key, and parsing of their values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/value.h"
#include "core/packet/packet.h"

namespace batchplane {

inline constexpr uint32_t kMaxMatchFields = 8;
inline constexpr uint32_t kMaxKeyWords = 8;
using WideKey = std::array<uint64_t, kMaxKeyWords>;

// One field: bytes [offset, offset + size) of the packet under a mask, kept in memory order and
// shifted into its place within one word of the key.
struct MatchField {
  uint32_t offset_bytes = 0;
  uint32_t size_bytes = 0;
  uint64_t mask = 0;  // memory order, in the low bytes
  uint32_t word = 0;
  uint32_t shift_bits = 0;
};

// Owner: the module's constructor; read-only afterwards.
class MatchLayout {
 public:
  // `fields`: [{offset, size_bytes, mask}]; throws ConfigError below `where`.
  MatchLayout(const List& fields, const std::string& where);

  [[nodiscard]] const std::vector<MatchField>& fields() const { return fields_; }
  [[nodiscard]] uint32_t n_words() const { return n_words_; }
  // Packets of at least this length take the fast path: each field is read by one 8-byte load.
  [[nodiscard]] uint32_t fast_len_bytes() const { return fast_len_bytes_; }
  // Shorter packets lack a field.
  [[nodiscard]] uint32_t min_len_bytes() const { return min_len_bytes_; }

  // The key of a rule's `values`, one per field; throws ConfigError.
  [[nodiscard]] WideKey key_of(const List& values, const std::string& where) const;

 private:
  void assign_words();

  std::vector<MatchField> fields_;
  uint32_t n_words_ = 1;
  uint32_t fast_len_bytes_ = 0;
  uint32_t min_len_bytes_ = 0;
};

// A number (12, "0x0c"), a MAC or an IPv4 address as up to 8 bytes in network order; throws
// ConfigError. Addresses need size_bytes of 6 or 4.
[[nodiscard]] uint64_t parse_field_value(const Value& value, uint32_t size_bytes,
                                         const std::string& where);

// The low `size_bytes` bytes of `x`, most significant first, as an 8-byte load would see them.
[[nodiscard]] inline uint64_t to_memory_order(uint64_t x, uint32_t size_bytes) {
  return __builtin_bswap64(x) >> (64 - 8 * size_bytes);
}

}  // namespace batchplane
