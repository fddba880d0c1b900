// SPDX-License-Identifier: BSD-3-Clause
// spec.cc - reads a simulation from plain values and refuses what makes no sense.
#include "sim/spec.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/nearest_word.h"
#include "spec/config_json.h"

namespace batchplane::sim {
namespace {

constexpr double kMostCostNs = 1e9;
constexpr double kMostStallNs = 60e9;

double number(const Value& from, const std::string& key, double fallback, const std::string& where,
              double most = 1e18) {
  const Value& value = from[key];
  if (value.is_null()) return fallback;
  const double result = value.as_double();
  if (!(result >= 0 && result <= most)) {
    throw ConfigError("'" + key + "' is " + std::to_string(result), where,
                      "give a number from 0 to " + std::to_string(static_cast<int64_t>(most)));
  }
  return result;
}

uint64_t whole(const Value& from, const std::string& key, uint64_t fallback,
               const std::string& where) {
  return static_cast<uint64_t>(
      number(from, key, static_cast<double>(fallback), where, 9007199254740992.0));
}

bool flag(const Value& from, const std::string& key, bool fallback) {
  return from[key].is_null() ? fallback : from[key].as_bool();
}

std::string text(const Value& from, const std::string& key, const std::string& fallback) {
  return from[key].is_null() ? fallback : from[key].as_string();
}

[[noreturn]] void refuse_name(const std::string& what, const std::string& name,
                              const std::vector<std::string>& known, const std::string& where) {
  const std::string near = nearest_word(name, known);
  throw ConfigError("no " + what + " '" + name + "'", where,
                    near.empty() ? "" : "did you mean '" + near + "'?");
}

// One of a few words; the first stands where none is given.
size_t choice(const Value& from, const std::string& key, const std::vector<std::string>& words,
              const std::string& where) {
  const std::string word = text(from, key, words.front());
  const auto it = std::ranges::find(words, word);
  if (it != words.end()) return static_cast<size_t>(it - words.begin());
  std::string list;
  for (const std::string& known : words) list += (list.empty() ? "" : ", ") + known;
  throw ConfigError("'" + key + "' is '" + word + "'", where, "choose from " + list);
}

void refuse_other_keys(const Value& from, const std::vector<std::string>& known,
                       const std::string& what, const std::string& where) {
  for (const auto& [key, value] : from.as_dict()) {
    if (std::ranges::find(known, key) == known.end()) refuse_name(what, key, known, where);
  }
}

void read_costs(const Value& costs, Spec& spec) {
  if (costs.is_null()) return;
  std::vector<std::string> names;
  for (const ModuleSpec& module : spec.pipeline.modules) names.push_back(module.name);
  for (const auto& [name, value] : costs.as_dict()) {
    const std::string where = "simulation.costs." + name;
    if (std::ranges::find(names, name) == names.end()) refuse_name("module", name, names, where);
    // A profile may say more of a module; what is needed must be there.
    if (!value.has("table_ns") &&
        !(value.has("cost_per_batch_ns") && value.has("cost_per_pkt_ns"))) {
      throw ConfigError("the cost of '" + name + "' is not whole", where,
                        "give cost_per_batch_ns and cost_per_pkt_ns, or table_ns");
    }
    ModuleCosts& made = spec.costs[name];
    made.law.cost_per_batch_ns = number(value, "cost_per_batch_ns", 0, where, kMostCostNs);
    made.law.cost_per_pkt_ns = number(value, "cost_per_pkt_ns", 0, where, kMostCostNs);
    if (value["table_ns"].is_null()) continue;
    for (const Value& ns : value["table_ns"].as_list()) {
      made.table_ns.push_back(ns.as_double());
      if (made.table_ns.back() >= 0 && made.table_ns.back() <= kMostCostNs) continue;
      throw ConfigError("a cost is negative or above a second", where + ".table_ns",
                        "measure it again");
    }
    if (made.table_ns.size() < spec.pipeline.engine.batch_pkts) {
      throw ConfigError("the table has " + std::to_string(made.table_ns.size()) +
                            " batch sizes of " + std::to_string(spec.pipeline.engine.batch_pkts),
                        where + ".table_ns", "measure up to engine.batch_pkts");
    }
  }
}

void read_loop(const Value& loop, LoopSpec& out) {
  const std::pair<const char*, double*> fields[] = {
      {"poll_ns", &out.poll_ns},
      {"poll_pkt_ns", &out.poll_pkt_ns},
      {"empty_poll_ns", &out.empty_poll_ns},
      {"firing_ns", &out.firing_ns},
      {"firing_pkt_ns", &out.firing_pkt_ns},
      {"split_branch_ns", &out.split_branch_ns},
      {"split_pkt_ns", &out.split_pkt_ns},
      {"hop_pkt_ns", &out.hop_pkt_ns},
      {"egress_pkt_ns", &out.egress_pkt_ns},
      {"far_poll_ns", &out.far.per_batch},
      {"far_pkt_ns", &out.far.per_pkt},
      {"far_early_pkt_ns", &out.far.early_per_pkt},
      {"sampled_batch_ns", &out.sampled_batch_ns},
      {"clock_read_ns", &out.clock_read_ns},
  };
  for (const auto& [name, target] : fields) {
    *target = number(loop, name, *target, "simulation.loop", kMostCostNs);
  }
  // Time has to pass in an idle loop.
  out.empty_poll_ns = std::max(out.empty_poll_ns, 1.0);
  if (loop.is_null()) return;
  std::vector<std::string> known;
  for (const auto& field : fields) known.emplace_back(field.first);
  refuse_other_keys(loop, known, "loop cost", "simulation.loop");
}

// The parameters of a generator, as the daemon takes them; flows as the routes list them.
SourceSpec read_source(const std::string& name, const std::string& port, const Value& params,
                       const Value& routes, std::vector<FlowRoute>& flow_routes) {
  const std::string where = "simulation.traffic." + name;
  SourceSpec source;
  source.name = name;
  source.port = port;
  source.rate_pps = number(params, "rate_pps", source.rate_pps, where, 1e9);
  constexpr exec::ArrivalKind kKinds[] = {exec::ArrivalKind::kConstant, exec::ArrivalKind::kPoisson,
                                          exec::ArrivalKind::kOnOff};
  source.arrivals = kKinds[choice(params, "arrivals", {"constant", "poisson", "on_off"}, where)];
  constexpr exec::Order kOrders[] = {exec::Order::kRoundRobin, exec::Order::kRandom};
  source.order = kOrders[choice(params, "order", {"round_robin", "random"}, where)];
  source.on_ns = std::max<uint64_t>(1, whole(params, "on_ns", source.on_ns, where));
  source.off_ns = whole(params, "off_ns", source.off_ns, where);
  source.burst_pkts =
      static_cast<uint32_t>(std::max<uint64_t>(1, whole(params, "burst_pkts", 1, where)));
  source.seed = whole(params, "seed", 1, where);
  source.is_saturating = flag(params, "saturate", false);
  source.is_on = flag(params, "is_on", true);
  source.max_late_ns = whole(params, "max_late_ns", 0, where);
  const uint64_t limit = whole(params, "limit_pkts", 0, where);
  source.limit_pkts = limit == 0 ? ~0ULL : limit;
  if (routes.is_null()) {
    throw ConfigError("generator '" + name + "' has no routes", "simulation.routes",
                      "give each of its flows the gates that it takes");
  }
  for (const Value& value : routes.as_list()) {
    TrafficFlow flow;
    flow.name = text(value, "name", "flow " + std::to_string(source.flows.size()));
    flow.weight = number(value, "weight", 1, where, 1e9);
    flow.rate_pps = number(value, "rate_pps", 0, where, 1e9);
    flow.size_bytes = static_cast<uint32_t>(whole(value, "size_bytes", 64, where));
    source.flows.push_back(std::move(flow));
    FlowRoute route;
    if (!value["gates"].is_null()) {
      for (const auto& [module, gate] : value["gates"].as_dict()) {
        route[module] = gate.is_int() ? std::to_string(gate.as_int()) : gate.as_string();
      }
    }
    flow_routes.push_back(std::move(route));
  }
  if (source.flows.empty()) {
    throw ConfigError("generator '" + name + "' has no flows", "simulation.routes." + name,
                      "name one at least");
  }
  return source;
}

TraceArrivals read_trace(const Value& value) {
  const List& times = value["time_ns"].as_list();
  const List& flows = value["flow"].as_list();
  const Value& sizes = value["size_bytes"];
  TraceArrivals trace;
  for (const Value& time : times) trace.time_ns.push_back(static_cast<uint64_t>(time.as_int()));
  for (const Value& flow : flows) {
    // What does not fit is no number of a flow either.
    trace.flow.push_back(static_cast<uint32_t>(std::clamp<int64_t>(flow.as_int(), -1, INT32_MAX)));
  }
  if (sizes.is_null()) {
    trace.size_bytes.assign(times.size(), 64);
    return trace;
  }
  for (const Value& size : sizes.as_list()) {
    trace.size_bytes.push_back(static_cast<uint32_t>(size.as_int()));
  }
  return trace;
}

// Times and flows that came as negative numbers are above all that can be.
void check_trace(const TraceArrivals& trace, size_t n_flows, const std::string& where) {
  if (trace.time_ns.size() != trace.flow.size() ||
      trace.time_ns.size() != trace.size_bytes.size()) {
    throw ConfigError("time_ns, flow and size_bytes differ in length", where,
                      "give each packet one of each");
  }
  for (size_t i = 0; i < trace.time_ns.size(); ++i) {
    const auto packet = [&] { return "packet " + std::to_string(i) + " of the trace is "; };
    if (trace.time_ns[i] > INT64_MAX) {
      throw ConfigError(packet() + "before time 0", where, "let the first packet be at 0 or later");
    }
    if (i != 0 && trace.time_ns[i] < trace.time_ns[i - 1]) {
      throw ConfigError(packet() + "earlier than the one before", where, "sort it by time");
    }
    if (trace.flow[i] >= n_flows) {
      throw ConfigError(packet() + "of flow " +
                            std::to_string(static_cast<int32_t>(trace.flow[i])) + " of " +
                            std::to_string(n_flows),
                        where, "flows are numbered from 0");
    }
  }
}

uint32_t ring_pkts_of(const PipelineSpec& pipeline, const std::string& port) {
  for (const PortSpec& spec : pipeline.ports) {
    if (spec.name != port) continue;
    const auto it = spec.params.find("size_pkts");
    if (it != spec.params.end() && it->second.is_int()) {
      return static_cast<uint32_t>(std::clamp<int64_t>(it->second.as_int(), 1, 1 << 20));
    }
  }
  return 64;
}

StallSpec read_stalls(const Value& simulation, const std::string& key) {
  const Value& stalls = simulation[key];
  const std::string where = "simulation." + key;
  StallSpec spec;
  spec.rate_per_s = number(stalls, "rate_per_s", 0, where, 1e6);
  if (!stalls["lengths_ns"].is_null()) {
    for (const Value& length : stalls["lengths_ns"].as_list()) {
      if (!(length.as_double() >= 0 && length.as_double() <= kMostStallNs)) {
        throw ConfigError("a stall is negative or above a minute", where + ".lengths_ns",
                          "give nanoseconds");
      }
      spec.lengths_ns.push_back(static_cast<uint64_t>(length.as_double()));
    }
  }
  if (spec.rate_per_s > 0 && spec.lengths_ns.empty()) {
    throw ConfigError("stalls have a rate and no lengths", where, "give lengths_ns");
  }
  return spec;
}

void read_sources(const Value& simulation, Traces traces, Spec& spec) {
  const Value& routes = simulation["routes"];
  const bool drops = choice(simulation, "overflow", {"wait", "drop"}, "simulation.overflow") == 1;
  const double pkt_ns =
      number(simulation, "generator_ns_per_pkt", 0, "simulation.generator_ns_per_pkt", 1e6);
  const double burst_ns =
      number(simulation, "generator_burst_ns", 0, "simulation.generator_burst_ns", 1e6);
  const StallSpec stalls = read_stalls(simulation, "generator_stalls");
  const double look_ns =
      number(simulation, "generator_look_ns", 0, "simulation.generator_look_ns", 1e6);
  const double store_ns =
      number(simulation, "generator_store_ns", 0, "simulation.generator_store_ns", 1e6);
  const auto add = [&](SourceSpec source, std::vector<FlowRoute> flow_routes) {
    if (!simulation["traces"][source.name].is_null()) {
      source.trace = read_trace(simulation["traces"][source.name]);
    } else if (const auto given = traces.find(source.name); given != traces.end()) {
      source.trace = std::move(given->second);
    }
    check_trace(source.trace, source.flows.size(), "simulation.traces." + source.name);
    spec.sources.push_back(std::move(source));
    spec.routes.push_back(std::move(flow_routes));
  };
  for (const GeneratorSpec& generator : spec.pipeline.generators) {
    std::vector<FlowRoute> flow_routes;
    SourceSpec source = read_source(generator.name, generator.port, Value(generator.params),
                                    routes[generator.name], flow_routes);
    source.drops_when_full = drops;
    source.pkt_ns = pkt_ns;
    source.burst_ns = burst_ns;
    source.look_ns = look_ns;
    source.stalls = stalls;
    source.store_ns = store_ns;
    source.ring_pkts = ring_pkts_of(spec.pipeline, generator.port);
    add(std::move(source), std::move(flow_routes));
  }
  for (const ModuleSpec& module : spec.pipeline.modules) {
    if (module.kind != "source") continue;
    std::vector<FlowRoute> flow_routes;
    SourceSpec source =
        read_source(module.name, "", Value(module.params), routes[module.name], flow_routes);
    source.is_inline = true;
    source.is_saturating = true;
    source.ring_pkts = spec.pipeline.engine.batch_pkts;
    add(std::move(source), std::move(flow_routes));
  }
}

}  // namespace

Spec parse_spec(const Value& value, Traces traces) {
  Spec spec;
  Dict pipeline = value.as_dict();
  const Value simulation = value["simulation"];
  pipeline.erase("simulation");
  std::vector<ConfigError> errors;
  spec.pipeline = spec_from_value(Value(std::move(pipeline)), errors);
  if (!errors.empty()) throw errors.front();
  read_costs(simulation["costs"], spec);
  read_loop(simulation["loop"], spec.loop);
  read_sources(simulation, std::move(traces), spec);
  spec.noise_sigma = number(simulation["noise"], "sigma", 0, "simulation.noise", 10);
  spec.seed = whole(simulation, "seed", 1, "simulation");
  spec.stalls = read_stalls(simulation, "stalls");
  return spec;
}

}  // namespace batchplane::sim
