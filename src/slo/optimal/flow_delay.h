// SPDX-License-Identifier: BSD-3-Clause
// flow_delay.h - what a flow's measured delays say of the model, and how much of its SLO stays free
// for what no period knows of the next.
#pragma once

#include <cstdint>

#include "exec/control.h"
#include "slo/model/controller.h"

namespace batchplane::slo {

// Of one flow. Two numbers are learnt: by what factor its delays differ from the model's, and by
// how much that factor varies from period to period. The SLO is kept in all but kViolated of the
// periods when so many deviations stay free; where that is not so, a part of the SLO follows that
// rises with each broken period and falls with the others, until it is.
class FlowDelay {
 public:
  // What is known of a period beside its counts.
  struct How {
    bool holds = false;      // some packets were held: what is learnt without says little of them
    bool is_cut = false;     // age limits often came before triggers: delays are theirs
    bool has_moved = false;  // triggers, since the period before
    bool has_no_margin = false;  // it was planned without
  };
  // A period, and what the model says of the triggers that were in force.
  void learn(const exec::FlowPeriod& period, double modelled_ns, const How& how,
             const Settings& settings);
  // Packets were late before they were polled. Nothing confirms any more what costs rate, and too low
  // a rate is what keeps them waiting.
  void forget();
  // The SLO may have been edited; what is kept free of one says nothing of another.
  void set_slo(uint64_t slo_ns, const Settings& settings);

  [[nodiscard]] double slo_ns() const { return slo_ns_; }
  [[nodiscard]] bool has_other_slo() const { return has_other_slo_; }
  // More packets were late in the period than may be, and not by chance.
  [[nodiscard]] bool is_late() const { return is_late_; }
  // The percentile of the period; 0: too few packets.
  [[nodiscard]] double measured_ns() const { return measured_ns_; }
  // Measured over modelled delay.
  [[nodiscard]] double ratio() const { return ratio_; }
  // Of the SLO, that stays free.
  [[nodiscard]] double margin() const;

 private:
  void follow(double ratio, bool has_moved);

  double slo_ns_ = 0;
  bool has_other_slo_ = true;
  bool is_late_ = false;
  double measured_ns_ = 0;
  double ratio_ = 1;
  bool is_known_ = false;      // learnt from packets that were held
  double deviation_ = 0;       // mean of one period's ratio from ratio_, over that
  uint32_t periods_ = 0;       // with packets that were held
  double care_ = 0;            // of the SLO, beyond deviations
};

}  // namespace batchplane::slo
