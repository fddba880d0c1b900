// SPDX-License-Identifier: BSD-3-Clause
// flow_delay.h - how measured delays differ from the model's, and how much of the SLOs stays free
// for errors and noise.
#pragma once

#include <cstdint>
#include <optional>

#include "exec/control.h"
#include "slo/model/controller.h"

namespace batchplane::slo {

// Whether an SLO was broken by what cannot be chance: ten packets may be late, or ten too many are. None may be
// where the percentile is 1.
[[nodiscard]] bool is_surely_late(const exec::FlowPeriod& period, double percentile);

// The percentile of a period's delays; 0: too few packets.
[[nodiscard]] double percentile_ns(const exec::FlowPeriod& period, double percentile);

// The factor between one flow's measured and modelled delay.
class FlowDelay {
 public:
  // Properties of a period beside its counts.
  struct How {
    bool holds = false;    // packets were held: periods without holding say little about these
    bool crosses = false;  // several tasks: runs of one of them are only a part of the delay
    bool is_cut = false;   // age limits often fired before triggers, so they set the delays
  };
  // Starts a period with this SLO.
  void begin(uint64_t slo_ns);
  // Some period had held packets.
  [[nodiscard]] bool has_held() const { return periods_ > 0; }
  // Triggers have been chosen for the present SLO.
  void decided() {
    if (has_other_slo_) sum_ = {};
    has_other_slo_ = false;
  }
  // Learns from a period and the model's delay for the triggers that were in force. Periods of few packets
  // count together, until ten packets may be late or ten too many are.
  void learn(const exec::FlowPeriod& period, double modelled_ns, const How& how, double percentile);
  // To be called when packets were late before they were polled. A high ratio then lowers the rate
  // without any measurement to confirm it, and the low rate may be what sustains the backlog: so
  // part of the ratio is given up.
  void forget();

  [[nodiscard]] double slo_ns() const { return slo_ns_; }
  // The SLO differs from the one that triggers were chosen for.
  [[nodiscard]] bool has_other_slo() const { return has_other_slo_; }
  [[nodiscard]] bool is_late() const { return is_late_; }
  // By so little that triggers are to blame, not the machine.
  [[nodiscard]] bool is_late_by_little() const;
  // The measured percentile of the period; 0: too few packets.
  [[nodiscard]] double measured_ns() const { return measured_ns_; }
  // The same without the noise of a single period.
  [[nodiscard]] double usual_ns() const { return usual_ns_; }
  // Measured over modelled delay, of this flow and of the slowest of those that are alike.
  [[nodiscard]] double own_ratio() const { return ratio_; }
  [[nodiscard]] double ratio() const { return shared_ratio_; }
  void share(double ratio) { shared_ratio_ = ratio; }
  // Relative error of the last period: measured delay against model times ratio.
  [[nodiscard]] std::optional<double> error() const { return error_; }
  // The same, relative to how much the delay was to change since the period before it; less than a
  // tenth counts as a tenth.
  [[nodiscard]] std::optional<double> error_of_change() const { return error_of_change_; }

 private:
  void add(const exec::FlowPeriod& period, double modelled_ns, double percentile);

  // Periods with too few packets, and the mean of the model's delays over their packets.
  exec::FlowPeriod sum_;
  double modelled_sum_ns_ = 0;
  double slo_ns_ = 0;
  bool has_other_slo_ = true;
  bool is_late_ = false;
  double measured_ns_ = 0;
  double usual_ns_ = 0;
  double ratio_ = 1;
  double shared_ratio_ = 1;
  uint32_t periods_ = 0;   // with held packets
  bool has_seen_ = false;  // a period without held packets
  double last_ns_ = 0;     // measured percentile of the last period that had packets
  std::optional<double> error_;
  std::optional<double> error_of_change_;
};

// How much of the SLOs stays free. A model errs most just after triggers have moved, the more the
// farther they moved: a multiple of these errors stays free, per change of delay. While triggers rest,
// enough standard deviations stay free that the most variable of n flows violates its SLO in no
// more than Settings::violated_ratio of the periods. If that is not enough, an extra part is added, which rises
// after each period that was broken by as little as it may prevent, and falls after the others that tell a
// delay.
class Margin {
 public:
  explicit Margin(const Settings& settings);
  struct Seen {
    uint32_t flows = 0;      // with an SLO
    double error = 0;        // mean absolute error of the flows; of their changes, after a move
    uint32_t errors = 0;     // number of flows whose error was known
    bool is_late = false;    // any flow was late, by as little as care may prevent
    bool tells = false;      // any flow's delay is known
    bool has_moved = false;  // triggers moved since the period before
    bool was_used = false;   // the margin was used when the triggers were chosen
  };
  void learn(const Seen& seen);
  // Share of the SLO that stays free while triggers rest.
  [[nodiscard]] double at_rest() const;
  // Longest delay that a flow may have by the model under triggers that are not in force. Under those
  // that are it has `now_ns`; 0: not known.
  [[nodiscard]] double most_ns(double slo_ns, double now_ns) const;

 private:
  double one_flow_sigmas_;  // a normal value is above as many with the probability allowed
  double care_down_;        // of the SLO, after a period that was kept
  double sigmas_ = 0;       // standard deviations kept free at rest
  double move_error_ = 0;   // mean over flows, periods after moves, per change of delay
  double noise_ = 0;        // the same, all other periods
  double care_ = 0;         // extra part
};

}  // namespace batchplane::slo
