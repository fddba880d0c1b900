// SPDX-License-Identifier: BSD-3-Clause
// controller.cc - time of one step of the optimal controller: warm (counts fluctuate) and cold (all
// bypassed, first period), by number of branches and shape.
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "common/environment.h"
#include "common/report.h"
#include "slo/controller.h"
#include "slo/model.h"

namespace {

namespace slo = batchplane::slo;
namespace exec = batchplane::exec;
using batchplane::Rng;
using batchplane::TscClock;

constexpr uint32_t kMemoryMb = 64;
constexpr double kWarmTargetUs = 50;
constexpr double kColdTargetUs = 500;
constexpr uint32_t kPeriodsBefore = 20;  // a warm step's

// in -> split -> groups of branches: each group behind a look-up (none when there is one group),
// each branch four modules long and a flow of its own.
struct Scene {
  slo::Model model;
  uint32_t n_groups;
  uint32_t n_branches;
};

uint32_t add_module(slo::Model& model, std::string name, uint32_t from, uint32_t gate) {
  const auto m = static_cast<uint32_t>(model.modules.size());
  model.modules.push_back({.name = std::move(name), .has_buffer = m > 0});
  if (m == 0) return m;
  model.edges.push_back({from, gate, m});
  model.tasks[0].modules.push_back(m);
  return m;
}

std::unique_ptr<Scene> make_scene(uint32_t n_groups, uint32_t n_branches) {
  auto scene = std::make_unique<Scene>(Scene{{}, n_groups, n_branches});
  slo::Model& model = scene->model;
  model.tasks = {{.inputs = {0}}};
  add_module(model, "in", 0, 0);
  const uint32_t split = add_module(model, "split", 0, 0);
  for (uint32_t g = 0; g < n_groups; ++g) {
    const uint32_t lookup =
        n_groups > 1 ? add_module(model, "lookup_" + std::to_string(g), split, g) : split;
    for (uint32_t b = 0; b < n_branches / n_groups; ++b) {
      exec::ControlFlow flow{"flow_" + std::to_string(model.flows.size()), {0, split}};
      if (lookup != split) flow.path.push_back(lookup);
      uint32_t last = lookup;
      for (const char* kind : {"acl_", "nat_", "ttl_", "out_"}) {
        last = add_module(model, kind + flow.name, last, last == lookup ? b : 0);
        flow.path.push_back(last);
      }
      model.modules[last].is_egress = true;
      model.flows.push_back(flow);
    }
  }
  slo::mark_controlled(model);
  return scene;
}

// A period of 10 ms at 5 Mpps, counts fluctuating as Poisson counts do; triggers as they were set.
slo::Snapshot make_snapshot(const Scene& scene, const std::vector<uint32_t>& triggers, Rng& rng) {
  constexpr double kPkts = 50'000;
  const slo::Model& model = scene.model;
  slo::Snapshot out{.now_ns = 0, .period_ns = 10'000'000};
  out.modules.resize(model.modules.size());
  out.flows.resize(model.flows.size());
  out.tasks.resize(1);
  out.tasks[0] = {.in_pkts = static_cast<uint64_t>(kPkts), .runs = 5000, .idle_polls = 9000};
  out.tasks[0].busy_ns = 6'000'000;
  out.tasks[0].idle_ns = 4'000'000;
  out.tasks[0].run_p99_ns = 4'000;
  std::vector<double> share(model.modules.size(), 0);
  for (size_t f = 0; f < model.flows.size(); ++f) {
    const double part =
        (1 + 0.5 * static_cast<double>(f % 4)) / (1.75 * static_cast<double>(scene.n_branches));
    for (const uint32_t m : model.flows[f].path) share[m] += part;
    out.flows[f].slo_ns = 60'000 + 20'000 * (f % 5);
    out.flows[f].pkts = static_cast<uint64_t>(part * kPkts);
    out.flows[f].delay_ns = 45'000;
  }
  for (uint32_t m = 0; m < model.modules.size(); ++m) {
    exec::ModulePeriod& module = out.modules[m];
    const double noise = (rng.uniform() + rng.uniform() + rng.uniform() - 1.5) * 2;
    const double pkts = share[m] * kPkts;
    module.pkts = module.arrived_pkts = static_cast<uint64_t>(pkts + noise * std::sqrt(pkts));
    const double batch = 1 + 9 * share[m];
    const double executed = triggers[m] > 0 ? triggers[m] : batch;
    module.arrived_batches = static_cast<uint64_t>(pkts / batch);
    module.batches = static_cast<uint64_t>(pkts / executed);
    module.cost = {60.0 + 10 * (m % 7), 8.0 + m % 3};
    module.trigger_pkts = triggers[m];
    if (triggers[m] > 0) {
      module.causes[static_cast<uint32_t>(exec::Cause::kFull)] = {module.batches, module.pkts, 0};
    }
  }
  return out;
}

struct Times {
  std::vector<double> warm_us;
  std::vector<double> cold_us;
};

double timed_step(slo::Controller& controller, const slo::Snapshot& snapshot,
                  slo::Decision& decision) {
  const TscClock& clock = TscClock::instance();
  const uint64_t start_ns = clock.now_ns();
  decision = controller.step(snapshot);
  return static_cast<double>(clock.now_ns() - start_ns) * 1e-3;
}

// Controllers one after the other, each from its first step on.
Times measure(const Scene& scene, uint32_t n_steps) {
  Times times;
  Rng rng(7);
  while (times.warm_us.size() < n_steps) {
    const auto controller = slo::make_controller("optimal", scene.model, {});
    std::vector<uint32_t> triggers(scene.model.modules.size(), 0);
    uint32_t n_holding = 0;
    for (uint32_t period = 0; period < 2 * kPeriodsBefore; ++period) {
      const slo::Snapshot snapshot = make_snapshot(scene, triggers, rng);
      slo::Decision decision;
      const double us = timed_step(*controller, snapshot, decision);
      if (period == 0) times.cold_us.push_back(us);
      if (period >= kPeriodsBefore) times.warm_us.push_back(us);
      for (const exec::BufferChange& change : decision.changes) {
        triggers[change.module] = change.trigger_pkts;
      }
    }
    for (const uint32_t trigger : triggers) n_holding += trigger > 0 ? 1 : 0;
    if (n_holding < scene.n_branches / 2) throw std::runtime_error("hardly any trigger was set");
  }
  return times;
}

void report_case(bench::Report& report, const std::string& name, const Scene& scene,
                 uint32_t n_steps) {
  const Times times = measure(scene, n_steps);
  const auto figures_of = [&](const std::vector<double>& us) {
    return bench::bootstrap(static_cast<uint32_t>(us.size()), 200,
                            [&](const std::vector<uint32_t>& trials) {
                              std::vector<double> sample;
                              for (const uint32_t t : trials) sample.push_back(us[t]);
                              return std::vector<double>{bench::percentile(sample, 0.5),
                                                         bench::percentile(sample, 0.99)};
                            });
  };
  const auto warm = figures_of(times.warm_us);
  const auto cold = figures_of(times.cold_us);
  report.figure(name + ", warm step, median", "us", warm[0], bench::Target{kWarmTargetUs});
  report.figure(name + ", warm step, 99th percentile", "us", warm[1]);
  report.figure(name + ", cold step, median", "us", cold[0], bench::Target{kColdTargetUs});
  report.figure(name + ", cold step, 99th percentile", "us", cold[1]);
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("controller", options);
  for (const uint32_t n : {16U, 64U}) {
    const std::string branches = std::to_string(n) + " branches";
    if (report.wants("side by side")) {
      report_case(report, branches + " side by side", *make_scene(1, n), options.batches);
    }
    if (report.wants("in groups")) {
      report_case(report, branches + " in groups of 8", *make_scene(n / 8, n), options.batches);
    }
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.batches = 4000});
  return bench::guarded([&] { return run(options); });
}
