// SPDX-License-Identifier: BSD-3-Clause
// flow_delay.h - what measured delays say of the model, and how much of the SLOs stays free for what
// no period knows of the next.
#pragma once

#include <cstdint>
#include <optional>

#include "exec/control.h"
#include "slo/model/controller.h"

namespace batchplane::slo {

// More packets were late than may be. Of few packets one batch that is late says little.
[[nodiscard]] bool is_late_beyond_chance(const exec::FlowPeriod& period, double percentile);

// By what factor one flow's delays differ from the model's.
class FlowDelay {
 public:
  // What is known of a period beside its counts.
  struct How {
    bool holds = false;   // some packets were held: what is learnt without says little of them
    bool is_cut = false;  // age limits often came before triggers: delays are theirs
  };
  // A period begins to be looked at, with this SLO.
  void begin(uint64_t slo_ns);
  // Triggers were chosen for it.
  void decided() { has_other_slo_ = false; }
  // A period, and what the model says of the triggers that were in force.
  void learn(const exec::FlowPeriod& period, double modelled_ns, const How& how, double percentile);
  // Packets were late before they were polled. Nothing confirms any more what costs rate, and too low
  // a rate is what keeps them waiting.
  void forget();

  [[nodiscard]] double slo_ns() const { return slo_ns_; }
  // Than triggers were chosen for.
  [[nodiscard]] bool has_other_slo() const { return has_other_slo_; }
  [[nodiscard]] bool is_late() const { return is_late_; }
  // The percentile of the period; 0: too few packets.
  [[nodiscard]] double measured_ns() const { return measured_ns_; }
  // Measured over modelled delay.
  [[nodiscard]] double ratio() const { return ratio_; }
  // How far the last period was from what the ratio made of the model, over that.
  [[nodiscard]] std::optional<double> error() const { return error_; }

 private:
  double slo_ns_ = 0;
  bool has_other_slo_ = true;
  bool is_late_ = false;
  double measured_ns_ = 0;
  double ratio_ = 1;
  uint32_t periods_ = 0;   // with packets that were held
  bool has_seen_ = false;  // one without
  std::optional<double> error_;
};

// What stays free of all SLOs, as a part of them. A model errs most after triggers have moved, and
// moves are few (Tries): some of these errors stay free. Where triggers rest so many deviations do that
// the one of n flows which varies most keeps its SLO in all but kViolated of the periods. Where that is
// not enough, a part follows that rises with each broken period and falls with the others, until it is.
class Margin {
 public:
  explicit Margin(const Settings& settings);
  struct Seen {
    uint32_t flows = 0;      // with an SLO
    double error = 0;        // mean of their errors, without sign
    uint32_t errors = 0;     // so many were known
    bool is_late = false;    // any of them
    bool has_moved = false;  // triggers, since the period before
    bool was_used = false;   // the margin, when they were chosen
  };
  void learn(const Seen& seen);
  // For triggers that were never in force, and for those that are.
  [[nodiscard]] double of_moves() const;
  [[nodiscard]] double at_rest() const;

 private:
  double sigmas_ = 0;      // standard deviations at rest that stay free
  double move_error_ = 0;  // mean over flows, of periods after moves
  double noise_ = 0;       // and of the others
  double care_ = 0;        // beyond both
};

}  // namespace batchplane::slo
