// SPDX-License-Identifier: BSD-3-Clause
// consumer.cc - a program outside of this project: one step of `optimal` for one stage of batches.
#include <cstdio>

#include "base/error.h"
#include "slo/controllers.h"

namespace {

using batchplane::exec::ControlModel;
using batchplane::exec::PeriodSnapshot;

enum Module : uint32_t { kInfer, kInput };

// Requests come through an input, which has no buffer, to a stage that has one.
ControlModel one_stage() {
  ControlModel model;
  model.batch_limit_pkts = 64;
  model.modules = {{.name = "infer", .has_buffer = true, .is_controlled = true}, {.name = "input"}};
  model.edges = {{.from = kInput, .to = kInfer}};
  model.flows = {{.name = "requests", .path = {kInput, kInfer}}};
  model.tasks = {{.inputs = {kInput}, .modules = {kInfer}}};
  model.inputs = {{.module = kInput}};
  model.legs.of_flow.resize(1);
  return model;
}

// A second in which 200 requests came and ran one by one, 4.3 ms each.
PeriodSnapshot a_second() {
  PeriodSnapshot period{.now_ns = 1'000'000'000, .period_ns = 1'000'000'000};
  period.modules.resize(2);
  period.modules[kInfer] = {
      .batches = 200, .pkts = 200, .arrived_batches = 200, .arrived_pkts = 200};
  period.modules[kInfer].cost = {4e6, 3e5};
  period.modules[kInput].pkts = 200;
  period.flows = {{.slo_ns = 80'000'000, .pkts = 200, .delay_ns = 9'000'000}};
  period.tasks = {{.in_pkts = 200, .runs = 200, .busy_ns = 860'000'000, .idle_ns = 140'000'000}};
  period.inputs = {{.offered_pkts = 200, .taken_pkts = 200}};
  return period;
}

}  // namespace

int main() try {
  const ControlModel model = one_stage();
  const auto controller = batchplane::slo::make_controller("optimal", model, {});
  for (const auto& change : controller->step(a_second()).changes) {
    std::printf("%s %u %llu\n", model.modules[change.module].name.c_str(), change.trigger_pkts,
                static_cast<unsigned long long>(change.age_limit_ns));
  }
  return 0;
} catch (const batchplane::ConfigError& error) {
  std::fprintf(stderr, "%s\n", error.line().c_str());
  return 1;
}
