// SPDX-License-Identifier: BSD-3-Clause
// tries.h - remembers triggers that kept all SLOs as measured, and decides when to try others for a
// gain.
//
// A model errs most at triggers that were never in force. Triggers that keep all SLOs are left only
// for a gain, and rarely if the last try failed; the triggers that kept the SLOs then come back.
#pragma once

#include <cstdint>
#include <vector>

namespace batchplane::slo {

class Tries {
 public:
  // Records a period with these triggers: whether all SLOs were kept, and the time per packet.
  void observe(const std::vector<double>& triggers_pkts, bool is_kept, double pkt_ns);
  // The period says nothing about its triggers, good or bad.
  void skip() { has_failed_ = is_trying_ = false; }
  // To be called when traffic, costs or SLOs have changed.
  void forget();

  // The last try broke an SLO or gained nothing.
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] bool has_kept() const { return kept_ns_ > 0; }
  [[nodiscard]] const std::vector<uint32_t>& kept_pkts() const { return kept_pkts_; }
  [[nodiscard]] double kept_ns() const { return kept_ns_; }
  [[nodiscard]] bool may_try() const { return left_ == 0; }
  // The next period is a try.
  void begin() { is_trying_ = true; }

 private:
  static constexpr uint32_t kMinPatience = 16;
  static constexpr uint32_t kMaxPatience = 256;  // so rarely may a try break a period

  std::vector<uint32_t> kept_pkts_;
  double kept_ns_ = 0;                // time per packet with kept_pkts_; 0: none
  uint32_t patience_ = kMinPatience;  // periods between tries, after a failed one
  uint32_t left_ = 0;
  bool is_trying_ = false;
  bool has_failed_ = false;
};

}  // namespace batchplane::slo
