// SPDX-License-Identifier: BSD-3-Clause
// tries.h - triggers that kept all promises, as measured, and when others may be tried for their gain.
//
// A model errs most at triggers that were never in force. What is in force and keeps its promises is
// left only for a gain, and rarely where that failed before: then back to what did keep them.
#pragma once

#include <cstdint>
#include <vector>

namespace batchplane::slo {

class Tries {
 public:
  // A period with these triggers: whether all promises were kept, and the time that a packet took.
  void observe(const std::vector<double>& triggers_pkts, bool is_kept, double pkt_ns);
  // Neither good nor bad: nothing is learnt of its triggers.
  void skip() { has_failed_ = is_trying_ = false; }
  // Other traffic, costs or promises.
  void forget();

  // The last try broke a promise or gained nothing.
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] bool has_kept() const { return kept_ns_ > 0; }
  [[nodiscard]] const std::vector<uint32_t>& kept_pkts() const { return kept_pkts_; }
  [[nodiscard]] double kept_ns() const { return kept_ns_; }
  [[nodiscard]] bool may_try() const { return left_ == 0; }
  // The next period is one.
  void begin() { is_trying_ = true; }

 private:
  static constexpr uint32_t kMinPatience = 16;
  static constexpr uint32_t kMaxPatience = 256;  // so rarely may a period be broken

  std::vector<uint32_t> kept_pkts_;
  double kept_ns_ = 0;                // time of a packet with these; 0: none
  uint32_t patience_ = kMinPatience;  // periods between tries, after one that failed
  uint32_t left_ = 0;
  bool is_trying_ = false;
  bool has_failed_ = false;
};

}  // namespace batchplane::slo
