// SPDX-License-Identifier: BSD-3-Clause
// pace.h - a rate limiter that keeps one point in time: when everything sent so far is paid for.
//
// Equivalent to a token bucket of depth `burst` with enough tokens now iff paid_at <= now + burst
// time; nothing has to be added up as time passes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace batchplane::egress {

inline constexpr uint64_t kMinPaceBps = 16'000;
inline constexpr uint64_t kMaxPaceBps = 10'000'000'000'000;

// Times are in units of 2^-28 ns: a byte takes 2^48 of them at 8 kbit/s and 5.4 million at 400
// Gbit/s, so the rate is exact to 10^-7 over the whole range.
inline constexpr uint32_t kTimeUnitShift = 28;
inline uint64_t time_units_per_byte(uint64_t rate_bps) {
  constexpr auto kByte = static_cast<unsigned __int128>(8'000'000'000ULL) << kTimeUnitShift;
  return static_cast<uint64_t>((kByte + rate_bps / 2) / rate_bps);
}

#pragma pack(push, 4)
// A point in time, exact to a time unit.
struct FineTime {
  uint64_t ns = 0;
  uint32_t part = 0;  // of a nanosecond

  void add_units(uint64_t units) {
    units += part;
    ns += units >> kTimeUnitShift;
    part = static_cast<uint32_t>(units & ((1ULL << kTimeUnitShift) - 1));
  }
  void raise_to(uint64_t at_ns) {
    if (ns < at_ns) *this = {at_ns};
  }
  [[nodiscard]] uint64_t ceil_ns() const { return ns + (part != 0 ? 1 : 0); }
};

// Two of these and a place in the time wheel fill one cache line.
class Pace {
 public:
  [[nodiscard]] bool is_set() const { return units_per_byte_ != 0; }
  // 0: no rate. Debt not yet paid off is converted to the new rate.
  void set_rate_bps(uint64_t rate_bps, uint64_t now_ns) {
    const uint64_t before = units_per_byte_;
    units_per_byte_ = 0;
    if (rate_bps == 0) return;
    units_per_byte_ = time_units_per_byte(rate_bps);
    if (before == 0 || paid_at_.ns <= now_ns) return;
    const auto owed_ns = static_cast<unsigned __int128>(paid_at_.ns - now_ns);
    paid_at_.ns = now_ns + static_cast<uint64_t>(owed_ns * units_per_byte_ / before);
  }
  [[nodiscard]] uint64_t time_of_ns(uint64_t bytes) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(bytes) * units_per_byte_ >>
                                 kTimeUnitShift);
  }

  // Treats everything sent before at_ns as paid for: no earlier credit is kept.
  void forget_before(uint64_t at_ns) { paid_at_.raise_to(at_ns); }
  // Caps the debt at owed_ns.
  void owe_at_most(uint64_t owed_ns, uint64_t now_ns) {
    if (paid_at_.ns > now_ns + owed_ns) paid_at_ = {now_ns + owed_ns};
  }
  void charge(uint32_t bytes) { paid_at_.add_units(bytes * units_per_byte_); }
  // The most bytes that, sent from `now_ns` on, are paid for by `at_ns`, which is less than 2^32 ns later.
  [[nodiscard]] uint64_t bytes_until(uint64_t at_ns, uint64_t now_ns) const {
    if (!is_set()) return ~0ULL;
    const FineTime from = paid_at_.ns < now_ns ? FineTime{now_ns} : paid_at_;
    if (from.ns >= at_ns) return 0;
    return (((at_ns - from.ns) << kTimeUnitShift) - from.part) / units_per_byte_;
  }
  [[nodiscard]] bool is_paid(uint64_t now_ns) const {
    return paid_at_.ns < now_ns || (paid_at_.ns == now_ns && paid_at_.part == 0);
  }
  // The first nanosecond at which is_paid() holds.
  [[nodiscard]] uint64_t paid_at_ns() const { return paid_at_.ceil_ns(); }

 private:
  uint64_t units_per_byte_ = 0;
  FineTime paid_at_;
};
#pragma pack(pop)
static_assert(sizeof(Pace) == 20);

}  // namespace batchplane::egress
