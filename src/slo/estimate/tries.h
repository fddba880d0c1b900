// SPDX-License-Identifier: BSD-3-Clause
// tries.h - remembers triggers that kept all SLOs as measured, and decides when to try others for a
// gain.
//
// A model errs most at triggers that were never in force. Triggers that keep all SLOs are left only
// for a gain, and rarely if the last try broke an SLO. If it only gained nothing, they come back. Where an
// SLO is broken, those that kept it for several periods in a row come back. If the core has become
// faster since a failed try, as a shared one may, what failed may now keep the SLOs.
#pragma once

#include <cstdint>
#include <vector>

namespace batchplane::slo {

class Tries {
 public:
  struct Point {
    std::vector<uint32_t> triggers_pkts;
    double pkt_ns = 0;     // a packet takes; 0: no such triggers
    uint32_t periods = 0;  // in a row in which all SLOs were kept
  };

  // Records a period with these triggers: whether all SLOs were kept, and the time per packet.
  void observe(const std::vector<double>& triggers_pkts, bool is_kept, double pkt_ns);
  // The period says nothing about its triggers, good or bad.
  void skip() {
    has_failed_ = is_in_vain_ = is_broken_ = is_trying_ = false;
    last_ns_ = 0;
  }
  // To be called when traffic, costs or SLOs have changed.
  void forget();

  // The last period was a try, and broke an SLO or gained nothing; or just the latter.
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] bool is_in_vain() const { return is_in_vain_; }
  // Triggers that should come back; null: none.
  [[nodiscard]] const Point* way_back() const;
  [[nodiscard]] bool may_try() const { return left_ == 0; }
  // The next period is a try; now a packet takes `pkt_ns`.
  void begin(double pkt_ns) {
    is_trying_ = true;
    began_ns_ = pkt_ns;
  }

 private:
  void keep(std::vector<uint32_t> triggers_pkts, bool is_kept, double pkt_ns);

  static constexpr uint32_t kMinPatience = 16;
  static constexpr uint32_t kMaxPatience = 256;  // so rarely may a try break a period at one speed
  static constexpr double kFaster = 0.9;         // times the packet time before a failed try
  static constexpr uint32_t kProven = 8;         // periods in a row

  Point kept_;          // in the last period that kept all SLOs
  Point proven_;        // for several of them
  double noise_ = 0;    // mean relative change of it from period to period under the same triggers
  double last_ns_ = 0;  // time per packet in the last period; 0: not known
  std::vector<double> last_pkts_;     // and its triggers
  double began_ns_ = 0;               // time per packet before the last try
  uint32_t patience_ = kMinPatience;  // periods between tries, after a failed one
  uint32_t left_ = 0;
  bool is_trying_ = false;
  bool has_failed_ = false;
  bool is_in_vain_ = false;
  bool is_broken_ = false;  // an SLO, in the last period
};

}  // namespace batchplane::slo
