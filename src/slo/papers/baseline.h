// SPDX-License-Identifier: BSD-3-Clause
// baseline.h - the common part of the papers' controllers: measure a period, run the phases,
// decide.
#pragma once

#include <string>

#include "slo/papers/period_state.h"

namespace batchplane::slo {

class Baseline : public Controller {
 public:
  Baseline(std::string name, const Model& model, const Settings& settings)
      : name_(std::move(name)), settings_(settings), topology_(model) {}

  [[nodiscard]] const std::string& name() const final { return name_; }
  Decision step(const Snapshot& snapshot) final;
  [[nodiscard]] Explanation explain() const final;

 protected:
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const Settings& settings() const { return settings_; }

 private:
  virtual MeasureOptions next_options() { return {}; }
  virtual void decide(const Snapshot& snapshot, PeriodState& state) = 0;
  virtual void add_verdicts(std::vector<exec::FlowVerdict>& /*verdicts*/) const {}
  // Whether the controller sets age limits; by default the engine's own apply.
  [[nodiscard]] virtual bool chooses_ages() const { return false; }
  [[nodiscard]] virtual uint64_t age_limit_ns(const Snapshot& /*snapshot*/,
                                              const PeriodState& /*state*/,
                                              uint32_t /*segment*/) const {
    return exec::kStrandingAge;
  }
  [[nodiscard]] bool is_age_new(const Snapshot& snapshot, uint32_t segment, uint64_t age_ns) const;
  void add_change(const Snapshot& snapshot, uint32_t segment, Decision& decision) const;

  std::string name_;
  Settings settings_;
  Topology topology_;
  Snapshot snapshot_;  // of the last period
  PeriodState state_;
  std::vector<exec::FlowVerdict> verdicts_;
  bool is_first_step_ = true;
};

}  // namespace batchplane::slo
