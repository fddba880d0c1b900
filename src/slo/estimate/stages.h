// SPDX-License-Identifier: BSD-3-Clause
// stages.h - stages as buffers of the program: packets wait for a batch to fill, and then for their device.
#pragma once

#include <vector>

#include "slo/estimate/smoothed.h"
#include "slo/model/budget.h"
#include "slo/model/controller.h"

namespace batchplane::slo {

// Each stage is a module of the program, of the task that polls it. What its batches cost the worker is its
// cost per batch; what they take on the device is time away.
class Stages {
 public:
  explicit Stages(const Model& model);
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(stages_.size()); }
  // The stage, in the model; and its input there.
  [[nodiscard]] uint32_t module(uint32_t stage) const;
  [[nodiscard]] uint32_t input(uint32_t stage) const { return stages_[stage].input; }
  // Sets the program's modules from `first` on, one for each stage, as they were in the period.
  void update(const Snapshot& snapshot, uint32_t first, Program& program);
  // Trigger that the batch in force amounts to: 0 for the least one.
  [[nodiscard]] uint32_t trigger_pkts(uint32_t stage) const;
  // Age limits below this would cut batches to less than the device keeps up with.
  [[nodiscard]] double least_limit_ns(uint32_t stage) const {
    return stages_[stage].least_limit_ns;
  }
  // Mean batch of the last period in which any came back; 1 before.
  [[nodiscard]] double executed_pkts(uint32_t stage) const { return stages_[stage].job_pkts; }
  // The limit that it had before anything was decided.
  [[nodiscard]] double own_limit_ns(uint32_t stage) const {
    return static_cast<double>(stages_[stage].own_limit_ns);
  }
  // Of the period.
  [[nodiscard]] const exec::StageTotals& totals(uint32_t stage) const {
    return stages_[stage].seen.totals;
  }
  // Batch to command for a trigger.
  [[nodiscard]] uint32_t batch_pkts(uint32_t stage, uint32_t trigger_pkts) const;
  // Whether placement decides its batches. Where it does not, and a device runs them, they are decided here.
  [[nodiscard]] bool is_placed(uint32_t stage) const { return max_pkts(stages_[stage]) == 0; }
  [[nodiscard]] bool is_decided(uint32_t stage) const { return is_decided(stages_[stage]); }

 private:
  struct Stage {
    uint32_t input = 0;
    Smoothed rate;           // packets per ns
    Smoothed scale;          // measured over profiled time of a batch
    Smoothed wait_ns;        // of a batch for its device, and to be polled
    exec::StagePeriod seen;  // in the period
    double pkt_bytes = 0;
    double job_pkts = 1;
    uint32_t need_pkts = 1;  // least batch with which the device keeps up
    double least_limit_ns = 0;
    uint64_t own_limit_ns = 0;
    Stair steps;  // sizes worth looking at

    // As batches took in the past; 1 before any came back.
    [[nodiscard]] double times() const { return scale.is_known ? scale.value : 1; }
  };
  void measure(const Snapshot& snapshot, Stage& stage) const;
  void find_need(Stage& stage) const;
  [[nodiscard]] double device_share(const Stage& stage, double cycle_ns) const;
  [[nodiscard]] std::vector<const Stage*> beside(const Stage& stage) const;
  [[nodiscard]] double shortest_cycle_ns(const std::vector<const Stage*>& stages,
                                         double most_busy) const;
  void set(const Snapshot& snapshot, Stage& stage, ProgramModule& module) const;
  [[nodiscard]] bool is_decided(const Stage& stage) const {
    return max_pkts(stage) > 0 && stage.seen.device != nullptr;
  }
  [[nodiscard]] uint32_t max_pkts(const Stage& stage) const {
    return model_.inputs[stage.input].max_job_pkts;
  }

  const Model& model_;
  std::vector<Stage> stages_;
};

}  // namespace batchplane::slo
