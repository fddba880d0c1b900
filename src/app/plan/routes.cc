// SPDX-License-Identifier: BSD-3-Clause
// routes.cc - finds the traffic sources of the pipeline, and makes a packet of each of their flows.
#include "app/plan/routes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "app/plan/environment_build.h"
#include "app/plan/grouped_routes.h"
#include "app/plan/memory_plan.h"
#include "app/plan/route_walk.h"
#include "base/nearest_word.h"
#include "core/module/kind.h"
#include "core/module/live_table.h"
#include "modules/egress/egress_scheduler.h"
#include "traffic/generator.h"
#include "traffic/template.h"

namespace batchplane::app {
namespace {

// By scheduler.
using ScheduledFlows = std::map<std::string, std::set<uint32_t>>;

struct Entry {
  uint32_t instance = 0;
  uint16_t in_interface = kNoInterface;
};

const std::string& text_param(const ModuleSpec& module, const std::string& name) {
  static const std::string kNone;
  const auto it = module.params.find(name);
  return it == module.params.end() ? kNone : it->second.as_string();
}

Value way_value(const Way& way) {
  Dict value{{"path", List(way.path.begin(), way.path.end())}, {"end", way.path.back()}};
  if (!way.flow.empty()) value["flow"] = way.flow;
  if (!way.drop_reason.empty()) value["drop_reason"] = way.drop_reason;
  if (way.is_kept) value["kept_by"] = way.path.back();
  return value;
}

Value route_value(const std::string& name, const Route& route) {
  Dict gates;
  for (const auto& [module, gate] : route.gates) {
    gates[module] = gate == kDropGate ? Value("drop") : Value(gate);
  }
  List ways;
  for (const Way& way : route.ways) ways.push_back(way_value(way));
  return Dict{{"name", name}, {"gates", std::move(gates)}, {"ways", std::move(ways)}};
}

class RouteFinder {
 public:
  RouteFinder(Graph& graph, PacketPool& pool) : graph_(graph), pool_(pool), walk_(graph, pool) {
    for (const ModuleSpec& module : graph.spec.modules) {
      const Feed feed = find_module_kind(module.kind)->feed;
      if (feed == Feed::kPort || feed == Feed::kItself) entries_[module.name] = at(module);
    }
    for (const GeneratorSpec& generator : graph.spec.generators) {
      if (const auto entry = reader_of(generator.port)) {
        entries_[generator.name] = *entry;
      } else {
        unread_.push_back("no module takes in what generator '" + generator.name +
                          "' sends: no port_in reads port '" + generator.port + "'");
      }
    }
  }

  Dict routes(RoutesAre form) {
    Dict routes;
    for (const GeneratorSpec& generator : graph_.spec.generators) {
      routes[generator.name] = of_flows(generator.name, traffic::generator_params(),
                                        generator.params, "generators." + generator.name, form);
    }
    for (const ModuleSpec& module : graph_.spec.modules) {
      const ModuleInfo& info = *find_module_kind(module.kind);
      if (info.feed != Feed::kItself) continue;
      routes[module.name] =
          of_flows(module.name, info.params, module.params, "modules." + module.name, form);
    }
    return routes;
  }

  Dict of_frames(const Value& frames) {
    Dict routes;
    for (const auto& [name, list] : frames.as_dict()) {
      const auto entry = entries_.find(name);
      if (entry == entries_.end()) {
        std::vector<std::string> names;
        for (const auto& [known, at] : entries_) names.push_back(known);
        const std::string near = nearest_word(name, names);
        throw ConfigError("nothing called '" + name + "' brings packets in", "frames." + name,
                          near.empty() ? "name a generator, a source or a port_in"
                                       : "did you mean '" + near + "'?");
      }
      List found;
      for (const Value& hex : list.as_list()) {
        const std::string number = std::to_string(found.size());
        const std::string where = "frames." + name + "[" + number + "]";
        const Route route = route_of(name, entry->second, "frame " + number,
                                     traffic::parse_frame_hex(hex.as_string(), where), where);
        found.push_back(route_value("frame " + number, route));
      }
      routes[name] = std::move(found);
    }
    return routes;
  }

  [[nodiscard]] Dict free() const {
    Dict free;
    for (const auto& [name, weights] : walk_.free()) {
      free[name] = Dict{{"weights", List(weights.begin(), weights.end())}};
    }
    return free;
  }

  [[nodiscard]] const ScheduledFlows& scheduled() const { return scheduled_; }
  [[nodiscard]] List warnings() const {
    List lines(unread_.begin(), unread_.end());
    for (const std::string& line : walk_.warnings()) lines.emplace_back(line);
    return lines;
  }

 private:
  [[nodiscard]] Entry at(const ModuleSpec& module) const {
    Entry entry{graph_.index.at(module.name), kNoInterface};
    const std::string& interface = text_param(module, "interface");
    if (!interface.empty()) entry.in_interface = graph_.env->interface(interface).index;
    return entry;
  }

  [[nodiscard]] std::optional<Entry> reader_of(const std::string& port) const {
    for (const ModuleSpec& module : graph_.spec.modules) {
      const bool is_of_port = find_module_kind(module.kind)->feed == Feed::kPort;
      if (is_of_port && text_param(module, "port") == port) return at(module);
    }
    return std::nullopt;
  }

  // One packet per flow, of its first size: only the MTU makes gates depend on the size.
  List of_flows(const std::string& name, const std::vector<ParamSpec>& specs, const Dict& params,
                const std::string& where, RoutesAre form) {
    std::vector<ConfigError> errors;
    const Args args(specs, params, where, errors);
    if (!errors.empty()) throw ConfigErrors(std::move(errors));
    const auto entry = entries_.find(name);
    List routes;
    GroupedRoutes grouped;
    for (const traffic::FlowSpec& flow : traffic::parse_flows(args)) {
      const uint32_t wire_bytes =
          flow.sizes.empty() ? traffic::kMinFrameBytes : flow.sizes.front().wire_bytes;
      const Route route = entry == entries_.end()
                              ? Route{}
                              : route_of(name, entry->second, flow.name,
                                         traffic::build_frame(flow, wire_bytes), where);
      if (form == RoutesAre::kGrouped) {
        grouped.add(route, walk_.schedulers());
        note_scheduled(route);
      } else {
        routes.push_back(route_value(flow.name, route));
      }
    }
    return form == RoutesAre::kGrouped ? grouped.rows() : routes;
  }

  void note_scheduled(const Route& route) {
    for (const std::string& scheduler : walk_.schedulers()) {
      const auto gate = route.gates.find(scheduler);
      if (gate == route.gates.end() || gate->second == kDropGate) continue;
      scheduled_[scheduler].insert(gate->second);
    }
  }

  Route route_of(const std::string& source, const Entry& entry, const std::string& name,
                 const std::vector<uint8_t>& frame, const std::string& where) {
    if (frame.size() > pool_.data_bytes()) {
      throw ConfigError("a frame of " + std::to_string(frame.size()) +
                            " bytes does not fit packets of " + std::to_string(pool_.data_bytes()),
                        where, "raise mtu_bytes of an interface, or shorten the frame");
    }
    return walk_.walk(entry.instance, entry.in_interface, frame, source + ": " + name);
  }

  Graph& graph_;
  PacketPool& pool_;
  RouteWalk walk_;
  ScheduledFlows scheduled_;              // with grouped routes
  std::map<std::string, Entry> entries_;  // generators and input modules
  std::vector<std::string> unread_;
};

// Schedulers of each `egress`; with grouped routes also the bounds of the flows that are scheduled. The nodes
// of a tree may be very many, and are left out then.
Dict schedulers_of(const Graph& graph, RoutesAre form, const ScheduledFlows& scheduled) {
  Dict schedulers;
  for (const ModuleSpec& module : graph.spec.modules) {
    const Instance& instance = graph.instances[graph.index.at(module.name)];
    if (instance.is_door()) continue;
    const bool is_left_out =
        form == RoutesAre::kGrouped && text_param(module, "discipline") == kTreeDiscipline;
    const Value numbers = is_left_out ? Value(Dict{{"discipline", kTreeDiscipline}})
                                      : instance.module->for_simulation();
    if (numbers.is_null()) continue;
    Dict told = numbers.as_dict();
    if (const auto flows = scheduled.find(instance.name); flows != scheduled.end()) {
      const Dict which{{"flows", List(flows->second.begin(), flows->second.end())}};
      told["bounds"] = instance.module->command("bounds", which);
    }
    schedulers[instance.name] = std::move(told);
  }
  return schedulers;
}

}  // namespace

Value find_routes(const PipelineSpec& spec, const Value& frames, RoutesAre form) {
  std::vector<ConfigError> errors;
  Quiescence quiescence;
  auto env = build_environment(spec, PortsAre::kAbsent, {}, errors);
  if (!errors.empty()) throw ConfigErrors(std::move(errors));
  env->is_offline = true;
  env->quiescence = &quiescence;
  // Declared first: packets that a module still holds return to the pool when the graph is destroyed.
  const auto pool = pool_for_routes(spec, *env);
  const auto graph = build_graph(spec, std::move(env));
  return routes_in(*graph, *pool, frames, form);
}

std::unique_ptr<PacketPool> pool_for_routes(const PipelineSpec& spec, const Environment& env) {
  return std::make_unique<PacketPool>("routes", RouteWalk::kPoolPkts, data_bytes_needed(spec, env));
}

Value routes_in(Graph& graph, PacketPool& pool, const Value& frames, RoutesAre form) {
  RouteFinder finder(graph, pool);
  Dict found{{"routes", finder.routes(form)}};
  if (!frames.is_null()) {
    if (!frames["frames"].is_dict()) {
      throw ConfigError("no frames are given", "frames", "{\"frames\": {GENERATOR: [hex, ..]}}");
    }
    found["frames"] = finder.of_frames(frames["frames"]);
  }
  found["free"] = finder.free();
  found["schedulers"] = schedulers_of(graph, form, finder.scheduled());
  found["warnings"] = finder.warnings();
  return found;
}

}  // namespace batchplane::app
