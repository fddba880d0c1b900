// SPDX-License-Identifier: BSD-3-Clause
// runtime_show.cc - answers of `show`.
#include "app/runtime/runtime.h"
#include "core/module/kind.h"

#include <algorithm>

#include "base/clock.h"
#include "base/nearest_word.h"
#include "core/module/args.h"
#include "telemetry/telemetry.h"

namespace batchplane::app {
namespace {

const std::vector<std::string> kSubjects{"runtime", "buffers", "flows",      "drops",     "ports",
                                         "tables",  "graph",   "generators", "slo",       "control",
                                         "model",   "periods", "costs",      "placement", "all"};

Value port_value(const std::string& name, const std::string& kind, const Port& port) {
  const PortStats stats = port.stats();
  return Dict{{"name", name},
              {"kind", kind},
              {"is_up", port.is_up()},
              {"is_exhausted", port.is_exhausted()},
              {"mac", net::format_mac(port.mac())},
              {"mtu_bytes", port.mtu_bytes()},
              {"held_pkts", port.held_pkts()},
              {"stats", Dict{{"rx_pkts", stats.rx_pkts},
                             {"rx_bytes", stats.rx_bytes},
                             {"tx_pkts", stats.tx_pkts},
                             {"tx_bytes", stats.tx_bytes},
                             {"rx_missed_pkts", stats.rx_missed_pkts},
                             {"rx_refused_pkts", stats.rx_refused_pkts},
                             {"tx_refused_pkts", stats.tx_refused_pkts}}},
              {"facts", port.show()}};
}

std::string gate_text(const Instance& from, uint32_t gate) {
  if (gate == kDropGate) return "drop";
  const ModuleInfo& info = *from.info;
  for (uint32_t i = 0; i < info.gate_names.size(); ++i) {
    if (info.gate_number(i) == gate) return info.gate_names[i];
  }
  return std::to_string(gate);
}

telemetry::GraphFacts facts_of(const Graph& graph) {
  telemetry::GraphFacts facts;
  for (const LinkedEdge& edge : graph.edges) {
    const Instance& from = graph.instances[edge.from];
    facts.edges.push_back({edge.from, gate_text(from, edge.gate), edge.to, edge.gate == kDropGate,
                           from.info->shape == Shape::kInput});
  }
  return facts;
}

}  // namespace

Value Runtime::show_ports() {
  const Graph& graph = parts_.engine->graph();
  List ports;
  for (const PortSpec& spec : graph.spec.ports) {
    const auto it = graph.env->ports.find(spec.name);
    if (it != graph.env->ports.end())
      ports.push_back(port_value(spec.name, spec.kind, *it->second));
  }
  return ports;
}

Value Runtime::show_tables() {
  List tables;
  for (const Instance& instance : parts_.engine->graph().instances) {
    Value shown = instance.module->show();
    if (!shown.is_dict() || shown.as_dict().empty()) continue;
    Dict table = shown.as_dict();
    table["module"] = instance.name;
    table["kind"] = instance.info->kind;
    tables.emplace_back(std::move(table));
  }
  return tables;
}

Value Runtime::show_slo() { return control_.show_slo(show_snapshot("flows", *snapshot(true))); }

Value Runtime::list_table(const std::string& module, const Value& filter) {
  const std::lock_guard lock(locks_.tables);
  const Instance& instance = parts_.engine->graph().at(module);
  return instance.module->command("list", filter.is_null() ? Value(Dict{}) : filter);
}

Value Runtime::show_snapshot(const std::string& what, const Snapshot& now) {
  const Graph& graph = parts_.engine->graph();
  if (what == "runtime") {
    return telemetry::runtime_value(now, TscClock::instance().cycles_per_ns());
  }
  if (what == "buffers") {
    return telemetry::buffers_value(now, parts_.cache.worst_firings_per_run());
  }
  if (what == "flows") return telemetry::flows_value(now, graph.flow_paths);
  if (what == "drops") return telemetry::drops_value(now, drop_reasons());
  return telemetry::graph_value(now, facts_of(graph));
}

Value Runtime::show_all() {
  const std::scoped_lock lock(locks_.tables, locks_.engine);
  const auto now = snapshot(true);
  Dict all;
  for (const char* what : {"runtime", "buffers", "flows", "drops", "graph"}) {
    all[what] = show_snapshot(what, *now);
  }
  all["ports"] = show_ports();
  all["tables"] = show_tables();
  all["generators"] = parts_.generators->show();
  all["slo"] = control_.show_slo(all["flows"]);
  all["control"] = control_.show_control();
  if (placement_.is_on()) all["placement"] = placement_.show();
  return all;
}

Value Runtime::show(const std::string& what, const Value& args) {
  if (what == "all") return show_all();
  if (what == "tables") {
    if (args.has("module")) return list_table(args["module"].as_string(), args["filter"]);
    const std::lock_guard lock(locks_.tables);
    return show_tables();
  }
  const std::lock_guard lock(locks_.engine);
  if (what == "ports") return show_ports();
  if (what == "generators") return parts_.generators->show();
  if (what == "slo") return show_slo();
  if (what == "control") return control_.show_control();
  if (what == "periods") return control_.show_periods();
  if (what == "costs") return Dict{{"costs", control_.show_costs()}};
  if (what == "placement") return placement_.show();
  if (what == "model") return model_value(control_.model());
  if (std::ranges::find(kSubjects, what) != kSubjects.end()) {
    return show_snapshot(what, *snapshot(what == "flows"));
  }
  const std::string near = nearest_word(what, kSubjects);
  throw ConfigError("there is nothing called '" + what + "' to show", "what",
                    near.empty()
                        ? "runtime, buffers, flows, drops, ports, tables, graph, generators, slo, "
                          "control, model, periods, all"
                        : "did you mean '" + near + "'?");
}

}  // namespace batchplane::app
