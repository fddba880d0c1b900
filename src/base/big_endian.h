// SPDX-License-Identifier: BSD-3-Clause
// big_endian.h - header fields in network byte order at any address, and loads and stores of words in memory
// order.
#pragma once

#include <cstdint>
#include <cstring>

namespace batchplane {

template <typename Word>
[[nodiscard]] inline Word load_raw(const uint8_t* p) {
  Word x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
inline uint16_t load16_raw(const uint8_t* p) { return load_raw<uint16_t>(p); }
inline uint32_t load32_raw(const uint8_t* p) { return load_raw<uint32_t>(p); }
inline uint64_t load64_raw(const uint8_t* p) { return load_raw<uint64_t>(p); }

template <typename Word>
inline void store_raw(uint8_t* p, Word x) {
  std::memcpy(p, &x, sizeof x);
}
inline void store16_raw(uint8_t* p, uint16_t x) { store_raw(p, x); }
inline void store32_raw(uint8_t* p, uint32_t x) { store_raw(p, x); }

namespace net {

// Used like a plain number. `raw` is the value as stored: sums and comparisons need no byte swap.
template <typename T>
class BigEndian {
 public:
  BigEndian() = default;
  BigEndian(T x) { set_raw(turned(x)); }
  operator T() const { return turned(raw()); }
  [[nodiscard]] T raw() const { return load_raw<T>(bytes_); }
  void set_raw(T x) { store_raw(bytes_, x); }

 private:
  static T turned(T x) {
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(x);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(x);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(x);
  }

  uint8_t bytes_[sizeof(T)];
};

using Be16 = BigEndian<uint16_t>;
using Be32 = BigEndian<uint32_t>;
using Be64 = BigEndian<uint64_t>;

}  // namespace net
}  // namespace batchplane
