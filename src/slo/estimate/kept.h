// SPDX-License-Identifier: BSD-3-Clause
// kept.h - remembers which triggers kept all SLOs as measured, for the way back where others break one.
#pragma once

#include <cstdint>

#include "slo/model/budget.h"

namespace batchplane::slo {

// What a period showed of its triggers.
struct Outcome {
  // kLeftOut: only SLOs were broken for which the plan found no triggers.
  enum class Slos { kKept, kLeftOut, kBroken };

  Slos slos = Slos::kKept;
  double pkt_ns = 0;  // time per packet

  [[nodiscard]] bool is_kept() const { return slos == Slos::kKept; }
};

class Kept {
 public:
  struct Point {
    Triggers triggers_pkts;
    double pkt_ns = 0;     // a packet takes; 0: no such triggers
    uint32_t periods = 0;  // in which all SLOs were kept
  };

  void observe(const Triggers& triggers_pkts, const Outcome& seen);
  // Results so far, those of the last period included, say nothing about later periods.
  void prove_nothing() {
    proven_ = {};
    last_.periods = 0;
  }

  // The triggers of the last period that kept all SLOs.
  [[nodiscard]] const Point& last() const { return last_; }
  // Those that kept them for several periods in a row, or else the last; null: none, or the ones in force.
  [[nodiscard]] const Point* proven(const Triggers& in_force_pkts) const;

 private:
  static constexpr uint32_t kProven = 8;       // periods in a row
  static constexpr uint32_t kMostProven = 32;  // count: halved by a period that broke an SLO

  Point last_;
  Point proven_;
};

}  // namespace batchplane::slo
