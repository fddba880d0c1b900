// SPDX-License-Identifier: BSD-3-Clause
#include "profile/profile.h"

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/rng.h"
#include "profile/module_rig.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kSamplePkts = 4096;
constexpr uint32_t kMostRounds = 400;  // over all passes
constexpr uint32_t kLeastRounds = 12;
constexpr uint32_t kStandInRingPkts = 4096;

// One module and all that was measured of it.
class Subject {
 public:
  Subject(Stage& stage, const std::vector<Member>& members, const std::function<void()>& stir)
      : stage_(stage), rig_(stage, members, stir) {
    const uint32_t batch_limit_pkts = stage.graph().spec.engine.batch_pkts;
    for (uint32_t n = 1; n <= batch_limit_pkts && rig_.run(n); ++n) sizes_.push_back(n);
    rounds_ = Rounds(static_cast<uint32_t>(sizes_.size()));
    rig_.rest();
    order_.resize(sizes_.size());
    std::iota(order_.begin(), order_.end(), 0U);
  }

  [[nodiscard]] uint32_t most_pkts() const { return sizes_.empty() ? 0 : sizes_.back(); }
  [[nodiscard]] uint32_t n_rounds() const { return static_cast<uint32_t>(rounds_.count()); }

  // Rounds until the time is up, each with every size once in another order.
  void measure(double budget_ms, uint32_t most_rounds, Rng& rng) {
    if (sizes_.empty()) return;
    const TscClock& clock = TscClock::instance();
    const uint64_t end_ns = clock.now_ns() + static_cast<uint64_t>(budget_ms * 1e6);
    rig_.warm_up(sizes_.back());
    for (uint32_t round = 0; round < most_rounds; ++round) {
      if (round >= kLeastRounds && clock.now_ns() >= end_ns) break;
      for (size_t i = order_.size(); i > 1; --i) {
        std::swap(order_[i - 1], order_[rng.below(static_cast<uint32_t>(i))]);
      }
      for (const uint32_t s : order_) rounds_.add(s, time_of(sizes_[s]));
    }
    rig_.rest();
  }

  [[nodiscard]] ModuleProfile result() const {
    ModuleProfile profile{.most_measured_pkts = most_pkts(), .rounds = n_rounds()};
    if (sizes_.empty()) {
      profile.reason = "no batch could be measured";
      return profile;
    }
    const std::vector<double> pkts(sizes_.begin(), sizes_.end());
    const Fitted fitted = fit_rounds(pkts, rounds_);
    profile.law = fitted.law;
    profile.per_batch_ns = fitted.per_batch_ns;
    profile.per_pkt_ns = fitted.per_pkt_ns;
    profile.reason = reason_of(fitted.law, pkts, fitted.ns, fitted.noise_ns);
    for (const double ns : fitted.ns) profile.table_ns.push_back(std::max(ns, 0.0));
    const uint32_t batch_limit_pkts = stage_.graph().spec.engine.batch_pkts;
    for (uint32_t n = most_pkts() + 1; n <= batch_limit_pkts; ++n) {
      profile.table_ns.push_back(fitted.law.at(n));
    }
    return profile;
  }

 private:
  // Less what reading the clock takes, measured just before.
  double time_of(uint32_t n_pkts) {
    const uint64_t begin = begin_cycles();
    const auto empty = static_cast<double>(end_cycles() - begin);
    const std::optional<uint64_t> cycles = rig_.run(n_pkts);
    if (!cycles) return ns_of(0);
    return ns_of(std::max(static_cast<double>(*cycles) - empty, 0.0)) / rig_.batches_of(n_pkts);
  }
  static double ns_of(double cycles) { return cycles / TscClock::instance().cycles_per_ns(); }

  Stage& stage_;
  ModuleRig rig_;
  std::vector<uint32_t> sizes_;
  std::vector<uint32_t> order_;
  Rounds rounds_{0};
};

std::vector<std::vector<std::string>> groups_of(const Graph& graph, const Options& options) {
  if (!options.groups.empty()) return options.groups;
  std::vector<std::vector<std::string>> groups;
  for (const ModuleSpec& module : graph.spec.modules) groups.push_back({module.name});
  return groups;
}

// Those that traffic reaches; one on stand-ins when it reaches none.
std::vector<uint32_t> members_of(const Graph& graph, const std::vector<std::string>& group,
                                 const std::vector<Arrived>& arrived) {
  std::vector<uint32_t> members;
  for (const std::string& name : group) {
    const uint32_t i = graph.index.at(graph.at(name).name);
    if (!arrived[i].is_stand_in) members.push_back(i);
  }
  if (members.empty()) members.push_back(graph.index.at(graph.at(group.front()).name));
  return members;
}

}  // namespace

struct ModuleMeter::State {
  State(Graph& graph, PacketPool& pool, const Options& given)
      : options(given),
        stage(graph, pool),
        traffic(graph, pool),
        arrived(walk(stage, traffic, kSamplePkts)),
        groups(groups_of(graph, given)) {
    for (const auto& group : groups) {
      std::vector<Member> members;
      for (const uint32_t i : members_of(graph, group, arrived)) {
        members.push_back({&graph.instances[i], &arrived[i]});
      }
      chosen.push_back(graph.index.at(members.front().instance->name));
      subjects.push_back(std::make_unique<Subject>(stage, members, options.stir));
    }
  }

  const Options options;
  Stage stage;
  Traffic traffic;
  std::vector<Arrived> arrived;
  std::vector<std::vector<std::string>> groups;
  std::vector<std::unique_ptr<Subject>> subjects;
  std::vector<uint32_t> chosen;  // of each group the instance that names it
  Rng rng{1};
};

ModuleMeter::ModuleMeter(Graph& graph, PacketPool& pool, const Options& options)
    : state_(std::make_unique<State>(graph, pool, options)) {}
ModuleMeter::~ModuleMeter() = default;

uint32_t ModuleMeter::n_modules() const { return static_cast<uint32_t>(state_->subjects.size()); }

void ModuleMeter::pass(const std::function<void(uint32_t module)>& before) {
  State& s = *state_;
  for (uint32_t m = 0; m < n_modules(); ++m) {
    if (before) before(m);
    s.subjects[m]->measure(s.options.ms_per_module / s.options.passes,
                           std::max(kMostRounds / s.options.passes, kLeastRounds), s.rng);
  }
}

std::vector<ModuleProfile> ModuleMeter::results() const {
  const State& s = *state_;
  std::vector<ModuleProfile> profiles;
  for (size_t m = 0; m < s.subjects.size(); ++m) {
    const Instance& instance = s.stage.graph().instances[s.chosen[m]];
    ModuleProfile profile = s.subjects[m]->result();
    profile.name = instance.name;
    profile.kind = instance.info->kind;
    profile.members = s.groups[m];
    if (s.arrived[s.chosen[m]].is_stand_in) {
      profile.note = "no generator's packets reach it: measured on plain UDP packets";
    }
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

PipelineSpec measurable(const PipelineSpec& spec, std::map<std::string, std::string>& notes) {
  PipelineSpec out = spec;
  std::map<std::string, std::string> replaced;
  for (PortSpec& port : out.ports) {
    if (port.kind == "ring" || port.kind == "null") continue;
    replaced[port.name] = port.kind;
    port.kind = "ring";
    port.params = {{"size_pkts", kStandInRingPkts}};
  }
  for (ModuleSpec& module : out.modules) {
    module.trigger_pkts = 0;
    const auto port = module.params.find("port");
    if (port != module.params.end() && port->second.is_string() &&
        replaced.contains(port->second.as_string())) {
      notes[module.name] = "measured on a ring in memory: what a port of kind " +
                           replaced[port->second.as_string()] + " takes by itself is not in it";
    }
    const bool is_tap = module.kind == "pcap_tap" && module.params.contains("path") &&
                        !(module.params.at("path") == Value("/dev/null"));
    if (is_tap || module.kind == "local_tap") {
      notes[module.name] = std::string("not measured, because it would open ") +
                           (is_tap ? "its capture file" : "a device of the kernel") +
                           ": an empty module stands for it";
      module.kind = is_tap ? "null" : "queue";
      module.params.clear();
    }
  }
  return out;
}

}  // namespace batchplane::profile
