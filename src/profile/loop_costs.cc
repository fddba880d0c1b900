// SPDX-License-Identifier: BSD-3-Clause
#include "profile/loop_costs.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "base/clock.h"
#include "profile/loop_rig.h"
#include "profile/module_rig.h"
#include "profile/profile.h"
#include "profile/stand_in.h"

namespace batchplane::profile {
namespace {

constexpr double kQuiet = 0.1;
constexpr uint32_t kMostRounds = 400;
constexpr uint32_t kLeastRounds = 20;

// Contenders run in turn, round after round; the figure of each is its 10th percentile.
class InTurn {
 public:
  void add(const std::string& name, std::function<double()> run) {
    contenders_.push_back({name, std::move(run), {}});
  }
  void run(double budget_ms) {
    const TscClock& clock = TscClock::instance();
    const uint64_t end_ns = clock.now_ns() + static_cast<uint64_t>(budget_ms * 1e6);
    for (uint32_t round = 0; round < kMostRounds; ++round) {
      if (round >= kLeastRounds && clock.now_ns() >= end_ns) break;
      for (Contender& c : contenders_) c.ns.push_back(c.run());
    }
  }
  [[nodiscard]] double operator[](const std::string& name) const {
    const auto c = std::ranges::find(contenders_, name, &Contender::name);
    return percentile(c->ns, kQuiet);
  }

 private:
  struct Contender {
    std::string name;
    std::function<double()> run;
    std::vector<double> ns;
  };
  std::vector<Contender> contenders_;
};

std::string label(const char* what, uint32_t a, uint32_t b = 0) {
  return what + std::to_string(a) + "/" + std::to_string(b);
}

ModuleSpec module_spec(const std::string& name, const std::string& kind, Dict params = {}) {
  ModuleSpec module;
  module.name = name;
  module.kind = kind;
  module.params = std::move(params);
  return module;
}

// in -> split -> merge -> queue, queue -> sink: each kind once.
PipelineSpec parts_spec(uint32_t batch_pkts) {
  PipelineSpec spec;
  spec.name = "profile_parts";
  spec.engine.batch_pkts = batch_pkts;
  spec.ports.push_back({"link", "ring", {}});
  spec.modules = {module_spec("in", "port_in", {{"port", "link"}}),
                  module_spec("split", "split", {{"gates", 8}}), module_spec("merge", "merge"),
                  module_spec("queue", "queue", {{"size_pkts", LoopRig::kRingPkts}}),
                  module_spec("sink", "sink")};
  spec.edges = {{"in", "0", "split"}, {"queue", "0", "sink"}};
  for (uint32_t g = 0; g < 8; ++g) spec.edges.push_back({"split", std::to_string(g), "merge"});
  spec.edges.push_back({"merge", "0", "queue"});
  return spec;
}

std::unique_ptr<Graph> graph_of_parts(uint32_t batch_pkts) {
  const PipelineSpec spec = parts_spec(batch_pkts);
  auto env = std::make_unique<Environment>();
  env->batch_limit_pkts = batch_pkts;
  env->ports["link"] = std::make_shared<RingPort>(LoopRig::kRingPkts, false, "profile_parts_link");
  return build_graph(spec, std::move(env));
}

double at_least_0(double ns) { return std::max(ns, 0.0); }

class Loop {
 public:
  Loop(PacketPool& pool, uint32_t batch_limit_pkts, double budget_ms)
      : pool_(pool),
        most_(std::bit_floor(std::clamp(batch_limit_pkts, 8U, 64U))),
        budget_ms_(budget_ms),
        parts_(graph_of_parts(most_)) {
    const Options options{.ms_per_module = budget_ms / 8, .passes = 2};
    for (const ModuleProfile& profile : measure_modules(*parts_, pool, options, nullptr)) {
      laws_[profile.name] = profile.law;
    }
  }

  LoopCosts measure() {
    for (uint32_t n = 1; n <= most_; n *= 2) add_case(label("plain", n), {.batch_pkts = n});
    for (const uint32_t g : kGates) {
      for (uint32_t n = most_ / 4; n <= most_; n *= 2) {
        add_case(label("split", g, n), {.middle = Middle::kSplit, .batch_pkts = n, .gates = g});
      }
    }
    for (uint32_t q = 0; q <= most_; q = q == 0 ? 2 : q * 2) {
      add_case(label("buffer", q),
               {.middle = Middle::kBuffer, .batch_pkts = most_, .trigger_pkts = q});
    }
    LoopRig& plain = *rigs_.front();
    in_turn_.add("empty", [&plain] { return plain.run_empty(); });
    add_egress();
    in_turn_.run(budget_ms_ / 2);
    LoopCosts costs;
    costs.clock_read = clock_read_ns();
    costs.empty_poll = in_turn_["empty"];
    set_poll(costs);
    set_scatter(costs);
    set_buffer(costs);
    const CostLaw take = ring_take_law();
    costs.ring_take_per_batch = take.per_batch_ns;
    costs.ring_take_per_pkt = take.per_pkt_ns;
    costs.egress_per_pkt = at_least_0(in_turn_["egress"]);
    return costs;
  }

 private:
  static constexpr uint32_t kGates[] = {8, 16};
  static constexpr uint32_t kBookedPkts = 256;

  void add_case(const std::string& name, const LoopCase& what) {
    rigs_.push_back(std::make_unique<LoopRig>(what, pool_));
    LoopRig* const rig = rigs_.back().get();
    in_turn_.add(name, [rig] { return rig->run(); });
  }

  void add_egress() {
    meter_ = std::make_unique<exec::FlowMeter>(1);
    in_turn_.add("egress", [this] {
      const TscClock& clock = TscClock::instance();
      const uint64_t now_ns = clock.now_ns();
      for (uint32_t i = 0; i < kBookedPkts; ++i) meter_->record(0, 1, now_ns - i * 100);
      const uint64_t begin = TscClock::cycles();
      meter_->flush(now_ns);
      const auto cycles = static_cast<double>(TscClock::cycles() - begin);
      return cycles / clock.cycles_per_ns() / kBookedPkts;
    });
  }

  static double clock_read_ns() {
    return measure_clock_cost_cycles() / TscClock::instance().cycles_per_ns();
  }

  CostLaw ring_take_law() {
    Stage stage(*parts_, pool_);
    Arrived arrived{.pkts = stand_in_for_input(*parts_, "in")};
    ModuleRig rig(stage, parts_->at("queue"), arrived, 0, ModuleRig::Side::kTaken);
    std::vector<double> pkts;
    for (uint32_t n = 1; n <= most_; n *= 2) pkts.push_back(n);
    Rounds rounds(static_cast<uint32_t>(pkts.size()));
    const double cycles_per_ns = TscClock::instance().cycles_per_ns();
    for (uint32_t round = 0; round < kMostRounds; ++round) {
      for (uint32_t s = 0; s < pkts.size(); ++s) {
        const auto n = static_cast<uint32_t>(pkts[s]);
        const uint64_t begin = begin_cycles();
        const uint64_t empty = end_cycles() - begin;
        const uint64_t cycles = rig.run(n).value_or(empty);
        rounds.add(s, static_cast<double>(cycles - std::min(cycles, empty)) / cycles_per_ns /
                          rig.batches_of(n));
      }
    }
    return fit_law(pkts, rounds.times());
  }

  // What a loop takes beside its input and its sink.
  void set_poll(LoopCosts& costs) {
    std::vector<double> pkts;
    std::vector<double> ns;
    for (uint32_t n = 1; n <= most_; n *= 2) {
      pkts.push_back(n);
      ns.push_back(
          at_least_0(in_turn_[label("plain", n)] - laws_["in"].at(n) - laws_["sink"].at(n)));
    }
    const CostLaw law = fit_law(pkts, ns);
    costs.poll_per_batch = law.per_batch_ns;
    costs.poll_per_pkt = law.per_pkt_ns;
  }

  // The split takes packets in turn: n packets go to min(n, gates) sinks in equal batches. What is
  // left after all modules are taken off grows with branches and with packets: least squares
  // through the origin in both.
  void set_scatter(LoopCosts& costs) {
    double bb = 0, bp = 0, pp = 0, by = 0, py = 0;
    for (const uint32_t g : kGates) {
      for (uint32_t n = most_ / 4; n <= most_; n *= 2) {
        const double branches = std::min(n, g);
        const double sinks_ns = branches * laws_["sink"].at(n / branches);
        const double y = in_turn_[label("split", g, n)] - laws_["in"].at(n) - laws_["split"].at(n) -
                         sinks_ns - costs.poll_per_batch - costs.poll_per_pkt * n;
        bb += branches * branches;
        bp += branches * n;
        pp += double{1} * n * n;
        by += branches * y;
        py += n * y;
      }
    }
    const double determinant = bb * pp - bp * bp;
    costs.scatter_per_branch = (by * pp - py * bp) / determinant;
    costs.scatter_per_pkt = (py * bb - by * bp) / determinant;
    if (costs.scatter_per_branch < 0) costs = without_branch(costs, py / pp);
    if (costs.scatter_per_pkt < 0) {
      costs.scatter_per_branch = at_least_0(by / bb);
      costs.scatter_per_pkt = 0;
    }
  }
  static LoopCosts without_branch(LoopCosts costs, double per_pkt) {
    costs.scatter_per_branch = 0;
    costs.scatter_per_pkt = at_least_0(per_pkt);
    return costs;
  }

  // A batch of B through a buffer that fires B/q times, against one that is bypassed.
  void set_buffer(LoopCosts& costs) {
    std::vector<double> firings;
    std::vector<double> ns;
    const double n = most_;
    const double bypassed =
        in_turn_[label("buffer", 0)] - laws_["merge"].at(n) - laws_["sink"].at(n);
    for (uint32_t q = 2; q <= most_; q *= 2) {
      const double fired = n / q;
      firings.push_back(fired);
      ns.push_back(at_least_0(in_turn_[label("buffer", q)] - bypassed -
                              fired * (laws_["merge"].at(q) + laws_["sink"].at(q))));
    }
    const CostLaw law = fit_law(firings, ns);
    costs.firing = law.per_pkt_ns;
    costs.buffered_per_pkt = law.per_batch_ns / n;
  }

  PacketPool& pool_;
  uint32_t most_;
  double budget_ms_;
  std::unique_ptr<Graph> parts_;
  std::map<std::string, CostLaw> laws_;
  std::vector<std::unique_ptr<LoopRig>> rigs_;
  std::unique_ptr<exec::FlowMeter> meter_;
  InTurn in_turn_;
};

}  // namespace

LoopCosts measure_loop(PacketPool& pool, uint32_t batch_limit_pkts, double budget_ms) {
  return Loop(pool, batch_limit_pkts, budget_ms).measure();
}

}  // namespace batchplane::profile
