// SPDX-License-Identifier: BSD-3-Clause
#include "app/start/device_profile_run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <thread>

#include "app/plan/environment_build.h"
#include "app/plan/memory_plan.h"
#include "app/start/profile_run.h"
#include "app/wire/json_value.h"
#include "base/percentile.h"
#include "base/pin_thread.h"
#include "core/engine/thread.h"
#include "profile/device_loop.h"
#include "profile/fit.h"
#include "profile/walk.h"
#include "profile/whole_counts.h"

namespace batchplane::app {
namespace {

constexpr uint32_t kDeviceSamplePkts = 4096;
constexpr uint32_t kSparePkts = 8192;
constexpr uint64_t kDeviceMemoryMb = 320;
constexpr double kUndisturbed = 0.1;  // percentile of the times, as for modules on workers
constexpr double kMostMs = 10'000;

uint32_t whole_from(const Value& value, const std::string& where, int64_t least, int64_t most) {
  if (value.is_int() && value.as_int() >= least && value.as_int() <= most)
    return static_cast<uint32_t>(value.as_int());
  throw ConfigError("out of range", where, std::to_string(least) + " to " + std::to_string(most));
}

// A module on a device, with its positions in the lists.
struct Place {
  std::string module;
  std::string device;
  std::unique_ptr<profile::DeviceLoop> loop;
  double alone_run_ns = 0;  // for batches of pairs
  double alone_wall_ns = 0;
};

// Everything that the loops use, in the order required for destruction.
struct Bench {
  Quiescence quiescence;
  std::unique_ptr<PacketPool> graph_pool;
  std::unique_ptr<PacketPool> pool;
  std::unique_ptr<Graph> graph;
  std::vector<profile::Arrived> arrived;
  Environment device_env;
  std::vector<Place> places;
  List refused;
};

// The stage reclaims a batch after ten times its law's time and runs it on the worker: prevented here.
void add_bench_devices(const DeviceProfileRequest& request, const PipelineSpec& spec,
                       Environment& env) {
  Dict laws;
  for (const ModuleSpec& module : spec.modules) {
    if (std::ranges::find(request.modules, module.name) != request.modules.end())
      laws[module.kind] = Dict{{"batch_ns", 1'000'000'000}};
  }
  PipelineSpec devices;
  devices.workers = spec.workers;
  devices.devices = request.devices;
  for (DeviceSpec& device : devices.devices) device.params["laws"] = laws;
  env.repeats_packets = true;
  env.n_workers = 1;
  std::vector<ConfigError> errors;
  Mistakes mistakes{errors, spec.source_map};
  offload::add_devices(devices, env, nullptr, mistakes);
  if (!errors.empty()) throw ConfigErrors(std::move(errors));
}

void add_places(const DeviceProfileRequest& request, Bench& bench) {
  const uint32_t max_pkts = *std::ranges::max_element(request.batch_pkts);
  std::vector<std::string> on{offload::kInline};
  for (const DeviceSpec& device : request.devices) on.push_back(device.name);
  for (const std::string& name : request.modules) {
    const auto& modules = bench.graph->spec.modules;
    const ModuleSpec& module = *std::ranges::find(modules, name, &ModuleSpec::name);
    const profile::Arrived& arrived = bench.arrived[bench.graph->index.at(name)];
    if (arrived.pkts.empty() || arrived.is_stand_in) {
      throw ConfigError("no packet of the pipeline's traffic comes to it", "modules." + name,
                        "give it traffic, or leave it out");
    }
    for (const std::string& device : on) {
      try {
        bench.places.push_back(
            {name, device,
             std::make_unique<profile::DeviceLoop>(bench.device_env, *bench.pool, module, device,
                                                   max_pkts, arrived.pkts)});
      } catch (const ConfigError& error) {
        bench.refused.emplace_back(
            Dict{{"module", name}, {"on", device}, {"reason", std::string(error.what())}});
      }
    }
  }
}

Dict place_value(const Place& place) { return {{"module", place.module}, {"on", place.device}}; }

List points_of(const DeviceProfileRequest& request, Bench& bench) {
  List points;
  size_t n_done = 0;
  for (const uint32_t batch_pkts : request.batch_pkts) {
    for (Place& place : bench.places) {
      // A device with its own memory works on several batches at once, so each takes longer than it would alone.
      const bool has_own_memory = place.loop->has_own_memory();
      profile::DeviceTimes times;
      if (has_own_memory) times = place.loop->run(batch_pkts, request.ms, 1);
      const std::vector<double> alone_ns = times.run_ns;
      times = place.loop->run(batch_pkts, request.ms);
      const std::vector<double>& batch_ns = has_own_memory ? alone_ns : times.run_ns;
      std::fprintf(stderr, "progress %zu/%zu\n", ++n_done,
                   bench.places.size() * request.batch_pkts.size());
      if (!times.is_good() || batch_ns.empty()) {
        Dict row = place_value(place);
        row["reason"] = "the device did not run its batches of " + std::to_string(batch_pkts);
        bench.refused.emplace_back(std::move(row));
        continue;
      }
      Dict point = place_value(place);
      point["batch_pkts"] = batch_pkts;
      point["pkt_bytes"] = place.loop->mean_pkt_bytes();
      point["batch_ns"] = percentile(batch_ns, kUndisturbed);
      point["median_ns"] = percentile(batch_ns, 0.5);
      point["wall_ns"] = times.wall_ns;
      point["feed_ns"] = percentile(times.feed_ns, kUndisturbed);
      point["jobs"] = times.jobs;
      point["dropped_pkts"] = times.dropped_pkts;
      points.emplace_back(std::move(point));
    }
  }
  return points;
}

// A device with its own memory works on batches of two modules at once: its throughput then shows how they
// slow each other down, not how long each took.
bool are_timed_by_ends(const Place& one, const Place& other) {
  return one.device == other.device && one.loop->has_own_memory();
}

List pairs_of(const DeviceProfileRequest& request, Bench& bench) {
  List rows;
  const uint32_t n = request.pair_batch_pkts;
  if (n == 0) return rows;
  for (Place& place : bench.places) {
    const profile::DeviceTimes times = place.loop->run(n, request.ms);
    if (!times.is_good()) continue;
    place.alone_run_ns = percentile(times.run_ns, 0.5);
    place.alone_wall_ns = times.wall_ns;
  }
  for (size_t i = 0; i < bench.places.size(); ++i) {
    for (size_t j = i + 1; j < bench.places.size(); ++j) {
      Place& one = bench.places[i];
      Place& other = bench.places[j];
      if (one.module == other.module || one.alone_run_ns <= 0 || other.alone_run_ns <= 0) continue;
      const auto both = profile::DeviceLoop::run_both(*one.loop, *other.loop, n, request.ms);
      if (!both.first.is_good() || !both.second.is_good()) continue;
      Dict row{{"one", place_value(one)}, {"other", place_value(other)}, {"batch_pkts", n}};
      if (are_timed_by_ends(one, other)) {
        row["one_factor"] = row["other_factor"] = 1 / (one.alone_wall_ns / both.first.wall_ns +
                                                       other.alone_wall_ns / both.second.wall_ns);
      } else {
        row["one_factor"] = percentile(both.first.run_ns, 0.5) / one.alone_run_ns;
        row["other_factor"] = percentile(both.second.run_ns, 0.5) / other.alone_run_ns;
      }
      rows.emplace_back(std::move(row));
    }
  }
  return rows;
}

// Power of each device with a sensor, idle and with each module in its largest batches.
List power_of(const DeviceProfileRequest& request, Bench& bench) {
  List rows;
  if (request.power_ms <= 0) return rows;
  const uint32_t most = *std::ranges::max_element(request.batch_pkts);
  // Sensors report the mean of about a second.
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(request.power_ms));
  std::map<std::string, double> idle_w;
  for (const Place& place : bench.places) {
    const std::optional<double> watts = place.loop->watts();
    if (watts) idle_w.emplace(place.device, *watts);
  }
  for (const auto& [device, watts] : idle_w)
    rows.emplace_back(Dict{{"module", ""}, {"on", device}, {"watts", watts}});
  for (Place& place : bench.places) {
    if (!idle_w.contains(place.device)) continue;
    (void)place.loop->run(most, request.power_ms);
    const std::optional<double> watts = place.loop->watts();
    if (!watts) continue;
    Dict row = place_value(place);
    row["watts"] = *watts;
    rows.emplace_back(std::move(row));
  }
  return rows;
}

void set_up(const DeviceProfileRequest& request, const PipelineSpec& spec, Bench& bench) {
  std::vector<ConfigError> errors;
  auto env = build_environment(spec, PortsAre::kReal, {}, errors);
  if (!errors.empty()) throw ConfigErrors(std::move(errors));
  env->quiescence = &bench.quiescence;
  env->repeats_packets = true;
  bench.graph = build_graph(spec, std::move(env));
  const uint32_t data_bytes = data_bytes_needed(spec, *bench.graph->env);
  bench.graph_pool =
      std::make_unique<PacketPool>("profile", pool_pkts_for(*bench.graph) + kSparePkts, data_bytes);
  const uint32_t max_pkts = *std::ranges::max_element(request.batch_pkts);
  bench.pool = std::make_unique<PacketPool>(
      "profile_devices",
      profile::DeviceLoop::kInside * std::max(max_pkts, 2 * request.pair_batch_pkts) + kSparePkts,
      data_bytes);
  {
    profile::Stage stage(*bench.graph, *bench.graph_pool);
    profile::Traffic traffic(*bench.graph, *bench.graph_pool);
    bench.arrived = profile::walk(stage, traffic, kDeviceSamplePkts);
  }
  bench.device_env.quiescence = &bench.quiescence;
  add_bench_devices(request, spec, bench.device_env);
  offload::lend_packets(bench.device_env, *bench.pool);
  add_places(request, bench);
}

}  // namespace

DeviceProfileRequest device_profile_request_from(const Value& value, const PipelineSpec& spec) {
  DeviceProfileRequest request;
  if (!value.is_dict()) throw ConfigError("expected a mapping", "profile request");
  for (const auto& [key, given] : value.as_dict()) {
    if (key == "devices") {
      for (const auto& [name, device] : given.as_dict()) {
        request.devices.push_back({name, device.as_dict().at("kind").as_string(),
                                   device.as_dict().at("params").as_dict()});
      }
    } else if (key == "modules") {
      request.modules = modules_from(given, spec, key);
    } else if (key == "batch_pkts") {
      for (const Value& n : given.as_list())
        request.batch_pkts.push_back(whole_from(n, key, 1, offload::kMaxJobPkts));
    } else if (key == "ms") {
      request.ms = given.is_int() ? static_cast<double>(given.as_int()) : given.as_double();
      if (!(request.ms > 0 && request.ms <= kMostMs))
        throw ConfigError("a time is out of range", key, "up to 10000 ms");
    } else if (key == "power_ms") {
      request.power_ms = given.is_int() ? static_cast<double>(given.as_int()) : given.as_double();
      if (!(request.power_ms >= 0 && request.power_ms <= kMostMs))
        throw ConfigError("a time is out of range", key, "0 to 10000 ms");
    } else if (key == "pair_batch_pkts") {
      request.pair_batch_pkts = whole_from(given, key, 0, offload::kMaxJobPkts);
    } else {
      throw ConfigError("unknown key '" + key + "'", "profile request",
                        "devices, modules, batch_pkts, ms, pair_batch_pkts, power_ms");
    }
  }
  if (request.modules.empty()) throw ConfigError("no module is named", "modules");
  if (request.batch_pkts.empty()) throw ConfigError("no batch is named", "batch_pkts");
  const uint32_t most = *std::ranges::max_element(request.batch_pkts);
  if (request.pair_batch_pkts > most)
    throw ConfigError("out of range", "pair_batch_pkts", "0 to " + std::to_string(most));
  return request;
}

Value run_device_profile(Startup& startup, const std::string& request_path) {
  startup.extra_memory_mb = kDeviceMemoryMb;
  startup.leaves_out_devices = true;
  plan(startup);
  const DeviceProfileRequest request =
      device_profile_request_from(parse_json(read_file(request_path), request_path), startup.spec);
  start_packets(startup);
  std::map<std::string, std::string> notes;
  const PipelineSpec spec = profile::measurable(startup.spec, notes);
  [[maybe_unused]] const PacketThread registered;
  Bench bench;
  set_up(request, spec, bench);
  // Not earlier: device threads inherit the affinity of the thread that creates them.
  pin_this_thread(spec.workers.front().core);
  List points = points_of(request, bench);
  List pairs = pairs_of(request, bench);
  List power = power_of(request, bench);
  return Dict{{"cpu", cpu_model()},
              {"core", spec.workers.front().core},
              {"daemon", kDaemonVersion},
              {"points", std::move(points)},
              {"pairs", std::move(pairs)},
              {"power", std::move(power)},
              {"refused", std::move(bench.refused)}};
}

}  // namespace batchplane::app
