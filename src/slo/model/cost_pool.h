// SPDX-License-Identifier: BSD-3-Clause
// cost_pool.h - the present costs of all modules. What is sampled of one module tells about all that are of the
// same make: of 64 branches, each is sampled less than once a period, and by themselves they would seem to
// differ by half.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/control.h"
#include "slo/model/cost_estimate.h"

namespace batchplane::slo {

// Modules that were profiled alike have one law. Each takes longer or less long than that only as far as its
// samples differ beyond chance.
class CostPool {
 public:
  CostPool(CostLaw prior, double shape, std::vector<uint32_t> modules);
  [[nodiscard]] const ModuleCostEstimate& common() const { return common_; }
  // Time that the i-th module takes, over that by the common law.
  [[nodiscard]] double ratio(size_t i) const { return members_[i].ratio; }
  [[nodiscard]] CostLaw cost(size_t i) const { return common_.cost().scaled(ratio(i)); }
  // Takes the samples of a period and writes the new estimates into it.
  void update(exec::PeriodSnapshot& snapshot);

 private:
  // Sums over periods, older ones with less weight.
  struct Member {
    double batches = 0;
    double took_ns = 0;
    double told_ns = 0;    // by the common law
    ExecutionNoise noise;  // about the member's own mean
    double ratio = 1;
  };
  void compare(const exec::PeriodSnapshot& snapshot);
  void add(const CostSamples& samples, Member& member);

  std::vector<uint32_t> modules_;
  std::vector<Member> members_;
  ModuleCostEstimate common_;
};

class CostEstimator {
 public:
  // Of a module: its profiled law, what else it must have in common with the others of its pool (empty: it is in
  // no pool), and how uncertain each cost of the law is by itself (ModuleCostEstimate).
  struct Prior {
    CostLaw law;
    std::string make;
    double shape = kProfiledShape;
  };
  // One for each module of the model, in the same order.
  explicit CostEstimator(const std::vector<Prior>& priors);

  // Takes the samples of a period and writes the new estimates into it.
  void update(exec::PeriodSnapshot& snapshot);

  [[nodiscard]] CostLaw cost(uint32_t module) const;
  // Estimated over profiled time (ModuleCostEstimate::drift_ratio).
  [[nodiscard]] double drift_ratio(uint32_t module) const;
  // Of all modules of its make together.
  [[nodiscard]] const CostLaw& common_cost(uint32_t module) const;

 private:
  struct Place {
    uint32_t pool = 0;
    uint32_t member = 0;
  };
  std::vector<CostPool> pools_;
  std::vector<Place> places_;  // by module
};

}  // namespace batchplane::slo
