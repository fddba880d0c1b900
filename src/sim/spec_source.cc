// SPDX-License-Identifier: BSD-3-Clause
// spec_source.cc - reads traffic: generators, inline sources, recorded traces, and stalls of the
// generators.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "exec/ring_size.h"
#include "sim/spec_fields.h"
#include "sim/spec_read.h"

namespace batchplane::sim {
namespace {

constexpr double kMaxStallNs = 60e9;

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
  source.window_pkts = static_cast<uint32_t>(whole(params, "window_pkts", 0, where));
  source.is_saturating = source.window_pkts != 0 || flag(params, "saturate", false);
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
    // A number out of range is no flow's number either.
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

// Negative times and flows were read as numbers above all valid ones.
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

// The simulated port's ring.
uint32_t ring_pkts_of(const PipelineSpec& pipeline, const std::string& port) {
  for (const PortSpec& spec : pipeline.ports) {
    if (spec.name != port) continue;
    const auto it = spec.params.find("size_pkts");
    if (it != spec.params.end() && it->second.is_int()) {
      return static_cast<uint32_t>(std::clamp<int64_t>(it->second.as_int(), 1, 1 << 20));
    }
  }
  return exec::kDefaultRingPkts;
}

}  // namespace

StallSpec read_stalls(const Value& simulation, const std::string& key) {
  const Value& stalls = simulation[key];
  const std::string where = "simulation." + key;
  StallSpec spec;
  spec.rate_per_s = number(stalls, "rate_per_s", 0, where, 1e6);
  if (!stalls["lengths_ns"].is_null()) {
    for (const Value& length : stalls["lengths_ns"].as_list()) {
      if (!(length.as_double() >= 0 && length.as_double() <= kMaxStallNs)) {
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
  const StallSpec stalls = read_stalls(simulation, "generator_stalls");
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
    source.costs = spec.loop.generator;
    source.stalls = stalls;
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

}  // namespace batchplane::sim
