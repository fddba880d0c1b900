// SPDX-License-Identifier: BSD-3-Clause
#include "profile/profile.h"

#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "core/module/kind.h"
#include "ports/port_kinds.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kSamplePkts = 4096;
constexpr uint32_t kMaxRounds = 400;  // over all passes
constexpr uint32_t kStandInRingPkts = 4096;

std::vector<uint32_t> all_sizes(uint32_t batch_limit_pkts) {
  std::vector<uint32_t> sizes(batch_limit_pkts);
  std::iota(sizes.begin(), sizes.end(), 1U);
  return sizes;
}

std::vector<std::vector<std::string>> groups_of(const Graph& graph, const Options& options) {
  if (!options.groups.empty()) return options.groups;
  std::vector<std::vector<std::string>> groups;
  for (const ModuleSpec& module : graph.spec.modules) groups.push_back({module.name});
  return groups;
}

// The group's modules that traffic reaches; if there are none, its first one, on stand-in packets.
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
        stage(graph, pool, given.feeders),
        traffic(graph, pool),
        arrived(walk(stage, traffic, kSamplePkts)),
        groups(groups_of(graph, given)) {
    for (const auto& group : groups) {
      std::vector<Member> members;
      for (const uint32_t i : members_of(graph, group, arrived)) {
        members.push_back({&graph.instances[i], &arrived[i]});
      }
      chosen.push_back(graph.index.at(members.front().instance->name));
      timers.push_back(std::make_unique<ModuleTimer>(
          stage, members, all_sizes(graph.spec.engine.batch_pkts), options.stir));
    }
  }

  const Options options;
  Stage stage;
  Traffic traffic;
  std::vector<Arrived> arrived;
  std::vector<std::vector<std::string>> groups;
  std::vector<std::unique_ptr<ModuleTimer>> timers;
  std::vector<uint32_t> chosen;  // the instance that names each group
  Rng rng{1};
};

ModuleMeter::ModuleMeter(Graph& graph, PacketPool& pool, const Options& options)
    : state_(std::make_unique<State>(graph, pool, options)) {}
ModuleMeter::~ModuleMeter() = default;

uint32_t ModuleMeter::n_modules() const { return static_cast<uint32_t>(state_->timers.size()); }

void ModuleMeter::pass(const std::function<void(uint32_t module)>& before) {
  State& s = *state_;
  for (uint32_t m = 0; m < n_modules(); ++m) {
    if (before) before(m);
    s.timers[m]->measure(s.options.ms_per_module / s.options.passes, kMaxRounds / s.options.passes,
                         s.rng);
  }
}

std::vector<ModuleProfile> ModuleMeter::results() const {
  const State& s = *state_;
  std::vector<ModuleProfile> profiles;
  for (size_t m = 0; m < s.timers.size(); ++m) {
    const Instance& instance = s.stage.graph().instances[s.chosen[m]];
    ModuleProfile profile = s.timers[m]->result();
    profile.name = instance.name;
    profile.kind = instance.info->kind;
    profile.members = s.groups[m];
    for (std::string& doubt : profile.doubts) doubt = profile.name + ": " + doubt;
    if (s.arrived[s.chosen[m]].is_stand_in) {
      profile.note = "no generator's packets reach it: measured on plain UDP packets";
    }
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

PipelineSpec measurable(const PipelineSpec& spec, std::map<std::string, std::string>& notes,
                        bool has_real_ports) {
  PipelineSpec out = spec;
  std::map<std::string, std::string> replaced;
  const auto stand_in = std::ranges::find_if(
      port_kinds(), [](const PortKindInfo& info) { return info.takes_generators; });
  for (PortSpec& port : out.ports) {
    if (has_real_ports || find_port_kind(port.kind)->is_memory) continue;
    replaced[port.name] = port.kind;
    port.kind = stand_in->kind;
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
    const ModuleInfo* const info = find_module_kind(module.kind);
    if (const auto opens = info->opens ? info->opens(module.params) : std::nullopt) {
      notes[module.name] =
          "not measured, because it would open " + opens->what + ": an empty module stands for it";
      module.kind = opens->stand_in;
      module.params.clear();
    }
  }
  return out;
}

}  // namespace batchplane::profile
