// SPDX-License-Identifier: BSD-3-Clause
// onoff.cc - the paper's simplest SLO-based controller.
#include "slo/papers/baseline.h"
#include "slo/papers/controllers.h"
#include "slo/papers/phases.h"

namespace batchplane::slo {
namespace {

class OnOff final : public Baseline {
 public:
  using Baseline::Baseline;

 private:
  void decide(const Snapshot& /*snapshot*/, PeriodState& state) override {
    push(topology(), settings(), state);
    recover_by_bypass(topology(), state);
    pull(topology(), settings(), PullTo::kFull, state);
  }
};

}  // namespace

std::unique_ptr<Controller> make_onoff(const Model& model, const Settings& settings) {
  return std::make_unique<OnOff>("onoff", model, settings);
}

}  // namespace batchplane::slo
