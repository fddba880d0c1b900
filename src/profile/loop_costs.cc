// SPDX-License-Identifier: BSD-3-Clause
#include "profile/loop_costs.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>

#include "base/clock.h"
#include "base/least_squares.h"
#include "profile/hop_meter.h"
#include "profile/loop_rig.h"
#include "profile/module_rig.h"
#include "profile/profile.h"
#include "profile/stand_in.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kMaxLoopRounds = 400;
constexpr uint32_t kMinLoopRounds = 20;
// Noise of fitted times that are differences of times ten times as long.
constexpr double kNoiseNs = 10;

// Contenders run in turn, round after round; the figure of each is its undisturbed time.
class InTurn {
 public:
  // `run` returns the time of one of `parts` that it times at once.
  void add(const std::string& name, uint32_t parts, std::function<double()> run) {
    contenders_.push_back({name, clock_step_ns() / parts, std::move(run), {}});
  }
  void run(double budget_ms, uint32_t max_rounds) {
    const TscClock& clock = TscClock::instance();
    const uint64_t end_ns = clock.now_ns() + static_cast<uint64_t>(budget_ms * 1e6);
    for (uint32_t round = 0; round < max_rounds; ++round) {
      if (round >= kMinLoopRounds && clock.now_ns() >= end_ns) break;
      for (Contender& c : contenders_) c.ns.push_back(c.run());
    }
  }
  [[nodiscard]] double operator[](const std::string& name) const {
    const auto c = std::ranges::find(contenders_, name, &Contender::name);
    return undisturbed(c->ns, c->step_ns);
  }

 private:
  struct Contender {
    std::string name;
    double step_ns;
    std::function<double()> run;
    std::vector<double> ns;
  };
  std::vector<Contender> contenders_;
};

constexpr uint32_t kGates[] = {8, 16};
constexpr uint32_t kBookedPkts = 256;

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

// in -> split -> merge -> queue, queue -> sink: one module of each kind.
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

// Takes batches out of a queue; filling the queue is not timed.
class Taker {
 public:
  Taker(Graph& graph, PacketPool& pool)
      : stage_(graph, pool),
        arrived_{.pkts = stand_in_for_input(graph, "in")},
        rig_(stage_, {{&graph.at("queue"), &arrived_}}, nullptr, ModuleRig::Side::kTaken) {}

  [[nodiscard]] uint32_t batches_of(uint32_t n_pkts) const { return rig_.batches_of(n_pkts); }
  double run(uint32_t n_pkts) {
    const uint64_t begin = begin_cycles();
    const uint64_t empty = end_cycles() - begin;
    const uint64_t cycles = rig_.run(n_pkts).value_or(empty);
    const double taken = static_cast<double>(cycles) - static_cast<double>(empty);
    return taken / TscClock::instance().cycles_per_ns() / rig_.batches_of(n_pkts);
  }

 private:
  Stage stage_;
  Arrived arrived_;
  ModuleRig rig_;
};

std::string of_pkts(const char* what, uint32_t n_pkts) {
  return what + std::string(" of ") + std::to_string(n_pkts) + " packets, without its modules";
}

}  // namespace

void raise_to_parts(EngineCosts& costs, Doubts& doubts) {
  const auto raise = [&doubts](double& whole_ns, const char* whole, double part_ns,
                               const char* part) {
    whole_ns = at_least_part(whole_ns, whole, part_ns, part, doubts);
  };
  raise(costs.empty_poll_ns, "an empty poll", costs.clock_read_ns, "reading the clock");
  raise(costs.poll_per_batch_ns, "a poll, per batch", costs.clock_read_ns, "reading the clock");
  raise(costs.poll_per_pkt_ns, "a poll, per packet", costs.egress_per_pkt_ns, "metering at egress");
}

struct LoopMeter::State {
  State(PacketPool& packets, uint32_t batch_limit_pkts, uint32_t n_passes, double ms,
        int other_core)
      : pool(packets),
        most(std::bit_floor(std::clamp(batch_limit_pkts, 8U, 64U))),
        passes(n_passes),
        ms_per_pass(ms),
        parts(graph_of_parts(most)),
        modules(*parts, pool, {.ms_per_module = ms / 16 * n_passes, .passes = n_passes}),
        taker(*parts, pool),
        hop(packets, other_core) {
    for (uint32_t n = 1; n <= most; n *= 2) add_case(label("plain", n), {.batch_pkts = n});
    for (const uint32_t g : kGates) {
      for (uint32_t n = most / 4; n <= most; n *= 2) {
        add_case(label("split", g, n), {.middle = Middle::kSplit, .batch_pkts = n, .gates = g});
      }
    }
    for (uint32_t q = 0; q <= most; q = q == 0 ? 2 : q * 2) {
      add_case(label("buffer", q),
               {.middle = Middle::kBuffer, .batch_pkts = most, .trigger_pkts = q});
    }
    for (uint32_t n = 1; n <= most; n *= 2) {
      in_turn.add(label("take", n), taker.batches_of(n), [this, n] { return taker.run(n); });
    }
    LoopRig& plain = *rigs.front();
    in_turn.add("empty", LoopRig::kEmptyLoops, [&plain] { return plain.run_empty(); });
    in_turn.add("egress", kBookedPkts, [this] { return book(); });
  }

  void add_case(const std::string& name, const LoopCase& what) {
    rigs.push_back(std::make_unique<LoopRig>(what, pool));
    LoopRig* const rig = rigs.back().get();
    in_turn.add(name, rig->n_loops(), [rig] { return rig->run(); });
  }

  // ns to book one packet's delay.
  double book() {
    const TscClock& clock = TscClock::instance();
    const uint64_t now_ns = clock.now_ns();
    for (uint32_t i = 0; i < kBookedPkts; ++i) meter.record(0, 1, now_ns - i * 100);
    const uint64_t begin = begin_cycles();
    meter.flush(now_ns);
    const auto cycles = static_cast<double>(end_cycles() - begin);
    return cycles / clock.cycles_per_ns() / kBookedPkts;
  }

  static double clock_read_ns() {
    return measure_clock_cost_cycles() / TscClock::instance().cycles_per_ns();
  }

  void set_ring(EngineCosts& costs, Doubts& doubts) const {
    std::vector<CostLaw::Point> points;
    for (uint32_t n = 1; n <= most; n *= 2) {
      points.push_back(
          {n, at_least_0(in_turn[label("take", n)], kLeastNoiseNs,
                         "taking " + std::to_string(n) + " packets from a queue", doubts)});
    }
    const CostLaw::Line line =
        line_of(points, kLeastNoiseNs,
                {"taking from a queue, per batch", "taking from a queue, per packet"}, doubts);
    costs.ring_take_per_batch_ns = line.cost_per_batch_ns;
    costs.ring_take_per_pkt_ns = line.cost_per_pkt_ns;
  }

  // Cost of a worker loop without its input and its sink.
  void set_poll(EngineCosts& costs, Doubts& doubts) {
    std::vector<CostLaw::Point> points;
    for (uint32_t n = 1; n <= most; n *= 2) {
      const double left_ns = in_turn[label("plain", n)] - laws["in"].ns(n) - laws["sink"].ns(n);
      points.push_back({n, at_least_0(left_ns, kNoiseNs, of_pkts("a poll", n), doubts)});
    }
    const CostLaw::Line line =
        line_of(points, kNoiseNs, {"a poll, per batch", "a poll, per packet"}, doubts);
    costs.poll_per_batch_ns = line.cost_per_batch_ns;
    costs.poll_per_pkt_ns = line.cost_per_pkt_ns;
  }

  // The split deals packets out round robin: n packets go to min(n, gates) sinks in equal batches.
  // The time left after subtracting all modules grows with each branch beyond the first and with
  // each packet: least squares through the origin, neither coefficient below 0.
  void set_scatter(EngineCosts& costs, Doubts& doubts) {
    LeastSquares<2> fit;
    for (const uint32_t g : kGates) {
      for (uint32_t n = most / 4; n <= most; n *= 2) {
        const double branches = std::min(n, g);
        const double sinks_ns = branches * laws["sink"].ns(n / branches);
        const double y = in_turn[label("split", g, n)] - laws["in"].ns(n) - laws["split"].ns(n) -
                         sinks_ns - costs.poll_per_batch_ns - costs.poll_per_pkt_ns * n;
        fit.add({branches - 1, double{1} * n}, y, 1);
      }
    }
    constexpr double kMost = std::numeric_limits<double>::max();
    const auto found = fit.solve({}, {}, {kMost, kMost});
    const auto free = fit.solve(found, {-kMost, -kMost}, {kMost, kMost});
    (void)at_least_0(free[0], kNoiseNs / (kGates[1] - 1), "splitting a batch, per further branch",
                     doubts);
    (void)at_least_0(free[1], kNoiseNs / most, "splitting a batch, per packet", doubts);
    costs.scatter_per_branch_ns = found[0];
    costs.scatter_per_pkt_ns = found[1];
  }

  // Compares a batch of B packets through a buffer that fires B/q times with a bypassed buffer.
  void set_buffer(EngineCosts& costs, Doubts& doubts) {
    std::vector<CostLaw::Point> points;  // x is the number of firings
    const double n = most;
    const double bypassed = in_turn[label("buffer", 0)] - laws["merge"].ns(n) - laws["sink"].ns(n);
    for (uint32_t q = 2; q <= most; q *= 2) {
      const uint32_t fired = most / q;
      const double left_ns = in_turn[label("buffer", q)] - bypassed -
                             fired * (laws["merge"].ns(q) + laws["sink"].ns(q));
      points.push_back(
          {fired, at_least_0(left_ns, kNoiseNs, of_pkts("a buffer with a trigger", q), doubts)});
    }
    std::ranges::reverse(points);
    const CostLaw::Line line = line_of(
        points, kNoiseNs, {"a full batch through a buffer", "a firing of a buffer"}, doubts);
    costs.firing_ns = line.cost_per_pkt_ns;
    costs.buffered_per_pkt_ns = line.cost_per_batch_ns / n;
  }

  PacketPool& pool;
  const uint32_t most;  // a power of two: sizes are halved and doubled
  const uint32_t passes;
  const double ms_per_pass;
  std::unique_ptr<Graph> parts;
  ModuleMeter modules;  // costs of the modules in the small pipelines
  Taker taker;
  HopMeter hop;
  std::map<std::string, CostLaw> laws;
  std::vector<std::unique_ptr<LoopRig>> rigs;
  exec::FlowMeter meter{1};
  InTurn in_turn;
};

LoopMeter::LoopMeter(PacketPool& pool, uint32_t batch_limit_pkts, uint32_t passes,
                     double ms_per_pass, int other_core)
    : state_(std::make_unique<State>(pool, batch_limit_pkts, passes, ms_per_pass, other_core)) {}
LoopMeter::~LoopMeter() = default;

void LoopMeter::pass() {
  State& s = *state_;
  s.modules.pass();
  s.in_turn.run(s.ms_per_pass / 2, std::max(kMaxLoopRounds / s.passes, kMinLoopRounds));
  s.hop.pass(s.ms_per_pass / 8);
}

EngineCosts LoopMeter::result(Doubts& doubts) const {
  State& s = *state_;
  for (const ModuleProfile& profile : s.modules.results()) s.laws[profile.name] = profile.law;
  EngineCosts costs;
  costs.clock_read_ns = State::clock_read_ns();
  costs.empty_poll_ns = s.in_turn["empty"];
  s.set_poll(costs, doubts);
  s.set_scatter(costs, doubts);
  s.set_buffer(costs, doubts);
  s.set_ring(costs, doubts);
  costs.egress_per_pkt_ns = s.in_turn["egress"];
  costs.hop = s.hop.result(doubts);
  raise_to_parts(costs, doubts);
  return costs;
}

}  // namespace batchplane::profile
