// SPDX-License-Identifier: BSD-3-Clause
// optimal_guard.h - what was measured with which triggers, at saturation: where the model is wrong,
// its decision must not stay slower than what was had before, nor than everything bypassed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace batchplane::slo {

// Triggers and age limits under which every promise was kept, and the rate that they carried.
struct OperatingPoint {
  std::vector<uint32_t> triggers_pkts;
  std::vector<uint64_t> limits_ns;
  double rate = 0;  // packets per ns, smoothed over the periods in force
  uint32_t periods = 0;
  double kept_mean = 0;  // share of these in which every promise was kept, smoothed
  // By flow, of the late packets that it may have: mean and variance over the periods in force.
  std::vector<double> late_mean;
  std::vector<double> late_variance;
};

class RateGuard {
 public:
  // One period, at the triggers that were in force.
  struct Period {
    bool is_comparable = false;   // saturated
    bool has_other_slos = false;  // than the last one
    bool is_kept = false;         // every promise
    bool is_excused = false;      // slow machine, backlog: what is measured says little of triggers
    double rate = 0;              // packets per ns of time that the machine left
    std::vector<double> late;     // by flow: packets, of those that may be
    std::vector<double> chance;   // by flow: variance over mean of that, before more is known
    double work_ns = 0;           // of a packet, were every batch one packet: changes with traffic
    double costs_ns = 0;          // and with costs, too
  };
  enum class Choice : uint8_t { kSolved, kMeasured, kProbe, kRetreat };

  void observe(const Period& period, const std::vector<uint32_t>& triggers_pkts,
               const std::vector<uint64_t>& limits_ns);
  // Whether a decision is put into force; otherwise best() is. `predicted` by the model, packets
  // per ns. The first steps are free: the model learns most from them.
  bool accepts(const std::vector<uint32_t>& triggers_pkts, double predicted, bool is_first);
  // The fastest point known; none after traffic, costs or SLOs have changed.
  [[nodiscard]] const OperatingPoint* best() const;
  // Whether the fastest point is in force, and a little more may be tried than what it uses.
  [[nodiscard]] bool may_probe() const;
  // How much of what measured delays leave is tried: less after each probe that failed.
  [[nodiscard]] double probe_share() const { return probe_share_; }
  void probe(const std::vector<uint32_t>& triggers_pkts, double predicted);
  // What is put into force next is none of this guard's: nothing is to be learnt from it.
  void set_aside();

  // Whether the last period was fast but late, or too close to it: then a little less is better
  // than the fastest point, if that is so much slower.
  [[nodiscard]] bool may_retreat() const { return is_late_ && best() != nullptr; }
  [[nodiscard]] bool was_kept() const { return is_kept_; }
  bool retreat(const std::vector<uint32_t>& triggers_pkts, double predicted);

  [[nodiscard]] bool has_points() const { return !points_.empty(); }
  [[nodiscard]] Choice choice() const { return choice_; }
  [[nodiscard]] uint32_t periods_left() const { return left_; }  // until the next try
  // With everything bypassed; 0: not known, or some promise was not kept.
  [[nodiscard]] double bypassed_rate() const;

 private:
  static constexpr double kMaxProbeShare = 0.5;
  void forget();
  void forget_others(const Period& period);
  void follow_speed(double factor);
  void judge_try(const Period& period, double best_before);
  void record(const Period& period, const std::vector<uint64_t>& limits_ns);
  void decide(Choice choice, const std::vector<uint32_t>& triggers_pkts, double predicted);
  [[nodiscard]] double chance_of_rates() const;
  [[nodiscard]] bool is_safe(const OperatingPoint& point) const;
  void drop_slowest();
  [[nodiscard]] size_t find(const std::vector<uint32_t>& triggers_pkts) const;

  std::vector<OperatingPoint> points_;
  std::vector<uint32_t> seen_;     // in the last period
  std::vector<uint32_t> decided_;  // for this one
  double rate_ = 0;                // of the last period
  double predicted_ = 0;           // for what is in force; 0: not by the model
  double trust_ = 1;               // measured over predicted rate
  double work_ns_ = 0;
  double costs_ns_ = 0;
  double probe_share_ = kMaxProbeShare;
  std::vector<double> chance_;
  bool is_kept_ = false;
  bool is_late_ = false;      // in the last period, or would be by chance
  bool is_left_out_ = false;  // of the last period nothing is known
  uint32_t left_out_ = 0;     // periods below saturation, in a row
  double noise_ = 0;  // of rates with the same triggers, relative: what is within it is no better
  bool is_trying_ = false;
  Choice choice_ = Choice::kSolved;
  uint32_t patience_ = 0;
  uint32_t left_ = 0;
};

}  // namespace batchplane::slo
