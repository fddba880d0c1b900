// SPDX-License-Identifier: BSD-3-Clause
// controller.cc - time of one step of the optimal controller: warm (counts fluctuate) and cold (all
// bypassed, first period), by number of branches and shape.
#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "common/environment.h"
#include "common/report.h"
#include "slo/controllers.h"
#include "slo/model/budget.h"
#include "slo/model/model.h"

namespace {

namespace slo = batchplane::slo;
namespace exec = batchplane::exec;
using batchplane::Rng;
using batchplane::TscClock;

constexpr uint32_t kMemoryMb = 64;
constexpr double kWarmTargetUs = 50;
constexpr double kColdTargetUs = 500;
constexpr uint32_t kPeriodsBefore = 20;  // a warm step's
constexpr uint32_t kColdSteps = 200;
constexpr double kOfferedPkts = 30'000;  // a period, below saturation
constexpr double kRingPkts = 64;
constexpr double kOtherNs = 10;  // of a packet, outside all modules
constexpr double kHoldNs = 1.5;
constexpr double kOutOfReach = 0.02;  // of the SLOs of the other scenes: shorter than any run

// in -> split -> groups of branches: each group behind a look-up (none when there is one group),
// each branch four modules long and a flow of its own.
struct Scene {
  slo::Model model;
  uint32_t n_groups;
  uint32_t n_branches;
  bool is_saturated;
  double run_pkts;
  double slo_share = 1;               // of the usual SLOs
  std::vector<uint32_t> before = {};  // by module: the one that it follows
  std::vector<double> share = {};     // by module, of the packets
};

uint32_t add_module(Scene& scene, std::string name, uint32_t from, uint32_t gate) {
  slo::Model& model = scene.model;
  scene.before.push_back(from);
  const auto m = static_cast<uint32_t>(model.modules.size());
  model.modules.push_back({.name = std::move(name), .has_buffer = m > 0});
  if (m == 0) return m;
  model.edges.push_back({from, gate, m});
  model.tasks[0].modules.push_back(m);
  return m;
}

std::unique_ptr<Scene> make_scene(uint32_t n_groups, uint32_t n_branches, bool is_saturated) {
  const double run_pkts = is_saturated ? 32 : 10;
  auto scene = std::make_unique<Scene>(Scene{{}, n_groups, n_branches, is_saturated, run_pkts});
  slo::Model& model = scene->model;
  model.tasks = {{.inputs = {0}}};
  add_module(*scene, "in", 0, 0);
  const uint32_t split = add_module(*scene, "split", 0, 0);
  for (uint32_t g = 0; g < n_groups; ++g) {
    const uint32_t lookup =
        n_groups > 1 ? add_module(*scene, "lookup_" + std::to_string(g), split, g) : split;
    for (uint32_t b = 0; b < n_branches / n_groups; ++b) {
      exec::ControlFlow flow{"flow_" + std::to_string(model.flows.size()), {0, split}};
      if (lookup != split) flow.path.push_back(lookup);
      uint32_t last = lookup;
      for (const char* kind : {"acl_", "nat_", "ttl_", "out_"}) {
        last = add_module(*scene, kind + flow.name, last, last == lookup ? b : 0);
        flow.path.push_back(last);
      }
      model.modules[last].is_egress = true;
      model.flows.push_back(flow);
    }
  }
  slo::mark_controlled(model);
  scene->share.resize(model.modules.size(), 0);
  for (size_t f = 0; f < model.flows.size(); ++f) {
    const double part =
        (1 + 0.5 * static_cast<double>(f % 4)) / (1.75 * static_cast<double>(n_branches));
    for (const uint32_t m : model.flows[f].path) scene->share[m] += part;
  }
  return scene;
}

// What becomes of packets with these triggers: batches, and the time of a packet.
struct Operation {
  std::vector<double> arriving_pkts;
  std::vector<double> executed_pkts;
  double pkt_ns = kOtherNs;
  double run_variance = 0;  // of the work of one run
};

batchplane::CostLaw cost_of(uint32_t module) { return {20.0 + 4 * (module % 7), 2.0 + module % 3}; }

Operation operate(const Scene& scene, const std::vector<uint32_t>& triggers) {
  Operation out;
  for (uint32_t m = 0; m < triggers.size(); ++m) {
    const double share = scene.share[m];
    const uint32_t before = scene.before[m];
    const double arriving =
        m == 0 ? scene.run_pkts
               : slo::branch_batch_pkts(out.executed_pkts[before], share / scene.share[before]);
    const double executed = std::max<double>(triggers[m], arriving);
    const double service_ns = cost_of(m).ns(executed);
    out.arriving_pkts.push_back(arriving);
    out.executed_pkts.push_back(executed);
    out.pkt_ns += share * (service_ns / executed + (triggers[m] > 0 ? kHoldNs : 0));
    out.run_variance += scene.run_pkts * share / executed * service_ns * service_ns;
  }
  return out;
}

// Delays as the 95th percentile of runs and, nearly, the longest fills make them.
void set_flows(const Scene& scene, const std::vector<uint32_t>& triggers,
               const Operation& operation, slo::Snapshot& out) {
  const auto in_pkts = static_cast<double>(out.tasks[0].in_pkts);
  const double interval_ns = static_cast<double>(out.period_ns) / in_pkts;
  const double runs = scene.is_saturated ? 1 + kRingPkts / scene.run_pkts : 2;
  const double turnaround_ns =
      runs * scene.run_pkts * operation.pkt_ns + 1.645 * std::sqrt(runs * operation.run_variance);
  for (size_t f = 0; f < scene.model.flows.size(); ++f) {
    double fills_ns = 0;
    for (const uint32_t m : scene.model.flows[f].path) {
      if (triggers[m] > 1) fills_ns += (triggers[m] - 1) * interval_ns / scene.share[m];
    }
    const auto slo_ns = static_cast<double>(120'000 + 40'000 * (f % 5));
    out.flows[f].slo_ns = static_cast<uint64_t>(scene.slo_share * slo_ns);
    out.flows[f].pkts =
        static_cast<uint64_t>(scene.share[scene.model.flows[f].path.back()] * in_pkts);
    out.flows[f].delay_ns = static_cast<uint64_t>(turnaround_ns + 0.95 * fills_ns);
  }
}

// A period of 10 ms, counts fluctuating as Poisson counts do; triggers as they were set.
slo::Snapshot make_snapshot(const Scene& scene, const std::vector<uint32_t>& triggers, Rng& rng) {
  const slo::Model& model = scene.model;
  const Operation operation = operate(scene, triggers);
  slo::Snapshot out{.now_ns = 0, .period_ns = 10'000'000};
  const auto period_ns = static_cast<double>(out.period_ns);
  const double in_pkts = scene.is_saturated ? period_ns / operation.pkt_ns : kOfferedPkts;
  out.tasks.resize(1);
  out.tasks[0] = {.in_pkts = static_cast<uint64_t>(in_pkts),
                  .runs = static_cast<uint64_t>(in_pkts / scene.run_pkts)};
  out.tasks[0].busy_ns = static_cast<uint64_t>(std::min(period_ns, in_pkts * operation.pkt_ns));
  out.tasks[0].idle_ns = out.period_ns - out.tasks[0].busy_ns;
  out.tasks[0].run_p99_ns = static_cast<uint64_t>(scene.run_pkts * operation.pkt_ns +
                                                  2.326 * std::sqrt(operation.run_variance));
  out.flows.resize(model.flows.size());
  set_flows(scene, triggers, operation, out);
  out.modules.resize(model.modules.size());
  for (uint32_t m = 0; m < model.modules.size(); ++m) {
    exec::ModulePeriod& module = out.modules[m];
    const double noise = (rng.uniform() + rng.uniform() + rng.uniform() - 1.5) * 2;
    const double pkts = scene.share[m] * in_pkts;
    module.pkts = module.arrived_pkts = static_cast<uint64_t>(pkts + noise * std::sqrt(pkts));
    module.arrived_batches = static_cast<uint64_t>(pkts / operation.arriving_pkts[m]);
    module.batches = static_cast<uint64_t>(pkts / operation.executed_pkts[m]);
    module.cost = cost_of(m);
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

// What a controller's step takes, and the triggers that it left.
double next_step_us(const Scene& scene, slo::Controller& controller,
                    std::vector<uint32_t>& triggers, Rng& rng) {
  const slo::Snapshot snapshot = make_snapshot(scene, triggers, rng);
  slo::Decision decision;
  const double us = timed_step(controller, snapshot, decision);
  for (const exec::BufferChange& change : decision.changes) {
    triggers[change.module] = change.trigger_pkts;
  }
  return us;
}

// Warm: one controller that has run for a while, under a load that stays. Cold: many first steps.
Times measure(const Scene& scene, uint32_t n_steps) {
  Times times;
  Rng rng(7);
  for (uint32_t i = 0; i < kColdSteps; ++i) {
    const auto controller = slo::make_controller("optimal", scene.model, {});
    std::vector<uint32_t> triggers(scene.model.modules.size(), 0);
    times.cold_us.push_back(next_step_us(scene, *controller, triggers, rng));
  }
  const auto controller = slo::make_controller("optimal", scene.model, {});
  std::vector<uint32_t> triggers(scene.model.modules.size(), 0);
  for (uint32_t period = 0; period < kPeriodsBefore + n_steps; ++period) {
    const double us = next_step_us(scene, *controller, triggers, rng);
    if (period >= kPeriodsBefore) times.warm_us.push_back(us);
  }
  if (scene.slo_share < 1) return times;
  // Of all branches, or of their groups.
  const auto n_holding = std::ranges::count_if(triggers, [](uint32_t t) { return t > 0; });
  if (n_holding <
      std::min(scene.n_groups == 1 ? scene.n_branches : scene.n_groups, scene.n_branches / 2))
    throw std::runtime_error("hardly any trigger was set");
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
    for (const bool is_saturated : {false, true}) {
      const std::string load = is_saturated ? ", saturated" : "";
      if (report.wants("side by side" + load)) {
        report_case(report, branches + " side by side" + load, *make_scene(1, n, is_saturated),
                    options.batches);
      }
      if (report.wants("in groups" + load)) {
        report_case(report, branches + " in groups of 8" + load,
                    *make_scene(n / 8, n, is_saturated), options.batches);
      }
    }
  }
  // Few modules, where the solver looks hardest for triggers: there are none.
  for (const uint32_t n : {4U, 8U}) {
    const auto scene = make_scene(1, n, true);
    scene->slo_share = kOutOfReach;
    if (report.wants("out of reach")) {
      report_case(report, std::to_string(n) + " branches, SLOs out of reach", *scene,
                  options.batches);
    }
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.batches = 4000});
  return bench::guarded([&] { return run(options); });
}
