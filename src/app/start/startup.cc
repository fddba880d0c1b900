// SPDX-License-Identifier: BSD-3-Clause
// startup.cc - the steps of a start; each needs the results of those before it.
#include "app/start/startup.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>

#include "app/plan/control_priority.h"
#include "app/plan/environment_build.h"
#include "app/plan/memory_plan.h"
#include "app/plan/routes.h"
#include "app/start/privileges.h"
#include "app/wire/control_socket.h"
#include "app/wire/json_value.h"
#include "app/wire/messages.h"
#include "core/module/kind.h"
#include "offload/devices.h"
#include "ports/eal.h"
#include "spec/config_json.h"
#include "spec/doors.h"
#include "spec/parts.h"
#include "spec/stages.h"

namespace batchplane::app {
namespace {

void read_pipeline(Startup& s) {
  std::vector<ConfigError> errors;
  const std::string& path = s.options.pipeline_path;
  s.spec = spec_from_value(parse_json(read_file(path), path), errors);
  if (s.leaves_out_devices) leave_out_devices(s.spec);
  const Kinds kinds = module_kind_facts();
  Mistakes mistakes{errors, s.spec.source_map};
  if (errors.empty()) add_stages(s.spec, kinds, mistakes);
  if (!errors.empty()) throw ConfigErrors(std::move(errors));
  add_parts(s.spec, kinds);
  add_doors(s.spec, kinds);
}

// $BATCHPLANE_RUN_DIR, or the user's default.
std::string run_dir() {
  if (const char* given = std::getenv("BATCHPLANE_RUN_DIR"); given != nullptr && *given != 0) {
    return given;
  }
  if (const char* xdg = std::getenv("XDG_RUNTIME_DIR"); xdg != nullptr && *xdg != 0) {
    return std::string(xdg) + "/batchplane";
  }
  return geteuid() == 0 ? "/run/batchplane" : "/tmp/batchplane-" + std::to_string(geteuid());
}

// Before any device is opened: a second daemon of the same name must not disturb the first.
void find_socket(Startup& s) {
  if (s.options.name.empty()) s.options.name = s.spec.name;
  if (s.options.socket_path.empty()) {
    if (s.options.name.find('/') != std::string::npos) {
      throw ConfigError("'" + s.options.name + "' is no name for a daemon", "--name",
                        "letters, digits, _ . -");
    }
    s.options.socket_path = run_dir() + "/" + s.options.name + ".sock";
  }
  ControlSocket::require_free(s.options.socket_path);
}

void plan_threads(Startup& s) {
  s.cores = plan_cores(s.options.cores);
  assign_workers(s.spec, s.cores);
}

void plan_memory(Startup& s) {
  s.memory_mb = s.options.memory_mb != 0 ? s.options.memory_mb
                                         : memory_mb_estimate(s.spec) + s.extra_memory_mb;
}

void start_backend(Startup& s) {
  allow_control_priority();
  s.eal = ports::start_eal(
      {.memory_mb = static_cast<uint32_t>(std::min<uint64_t>(s.memory_mb, UINT32_MAX)),
       .pci_devices = pci_devices(s.spec)});
}

// Tables may be large: mistakes that the file alone shows are reported before tables are built, all at once.
void make_environment(Startup& s) {
  std::vector<ConfigError> errors;
  s.env = build_environment(s.spec, PortsAre::kReal, {}, errors);
  s.quiescence = std::make_shared<Quiescence>();
  s.env->quiescence = s.quiescence.get();
  Mistakes mistakes{errors, s.spec.source_map};
  offload::add_devices(s.spec, *s.env, nullptr, mistakes);
  if (errors.empty()) return;
  // Reports mistakes in the graph together with them.
  const auto more = errors_of([&] { (void)build_graph(s.spec, std::move(s.env)); });
  for (const ConfigError& error : more) {
    if (error.where().starts_with("modules") || error.where().starts_with("edges") ||
        error.where().starts_with("flows")) {
      errors.push_back(error);
    }
  }
  throw ConfigErrors(std::move(errors));
}

void make_graph(Startup& s) { s.graph = build_graph(s.spec, std::move(s.env)); }

void make_pool(Startup& s) {
  const uint32_t n_pkts = pool_pkts_for(*s.graph);
  s.pool =
      std::make_unique<PacketPool>("packets", n_pkts, data_bytes_needed(s.spec, *s.graph->env));
  offload::lend_packets(*s.graph->env, *s.pool);
}

void start_ports(Startup& s) {
  for (const auto& [name, port] : s.graph->env->ports) {
    const auto errors = errors_of([&, &device = port] { device->start(*s.pool); });
    if (errors.empty()) continue;
    const ConfigError& error = errors.front();
    throw ConfigError(error.what(),
                      error.where().empty() ? s.spec.where("ports." + name) : error.where(),
                      error.fix());
  }
}

void give_up_rights(Startup& s) {
  std::string names;
  for (const std::string& name : drop_privileges(s.spec))
    names += (names.empty() ? "" : ", ") + name;
  log_line(names.empty() ? "keeps no capability" : "keeps " + names);
}

void make_engine(Startup& s) {
  s.engine = std::make_unique<Engine>(std::move(s.graph), std::move(s.pool), s.quiescence);
}

// The look-up method of tables, from the first module that has one.
Value lookup_path(const Graph& graph) {
  for (const Instance& instance : graph.instances) {
    const Value shown = instance.module->show();
    if (shown.has("lookup_path")) return shown["lookup_path"];
  }
  return {};
}

Dict facts_of(const Startup& s) {
  List workers;
  for (const auto& worker : s.engine->workers()) {
    workers.emplace_back(Dict{{"name", worker->options().name}, {"core", worker->options().core}});
  }
  const auto& generators = s.spec.generators;
  const bool has_generators = !generators.empty();
  return {{"lookup", lookup_path(s.engine->graph())},
          {"memory", s.eal.memory},
          {"simd_bits", s.eal.simd_bits},
          {"dpdk", s.eal.version},
          {"memory_mb", s.memory_mb},
          {"pool_pkts", s.engine->pool()->size_pkts()},
          {"cpu", cpu_model()},
          {"control_core", s.cores.control_core},
          {"generator_core", has_generators
                                 ? Value(generators.front().core >= 0 ? generators.front().core
                                                                      : s.cores.generator_core)
                                 : Value()},
          {"workers", std::move(workers)}};
}

void start_traffic(Startup& s) {
  s.engine->start();
  s.generators = std::make_unique<GeneratorSet>(s.cores.generator_core);
  s.generators->add(s.spec.generators, *s.engine->graph().env, *s.engine->pool());
}

void make_runtime(Startup& s) {
  Dict facts = facts_of(s);
  s.runtime = std::make_unique<Runtime>(
      Runtime::Parts{s.options.name, s.cores, std::move(facts), s.quiescence, std::move(s.engine),
                     std::move(s.generators), SnapshotCache(), true});
  s.runtime->begin_control(s.spec.controller);
  s.runtime->begin_placement(s.spec.placement);
}

// Whether flows with SLOs may come to packet schedulers.
bool promises_delays(const PipelineSpec& spec) {
  const auto has_slo = [](const FlowSpec& flow) { return flow.delay_slo_ns != 0; };
  return std::ranges::find(spec.modules, "egress", &ModuleSpec::kind) != spec.modules.end() &&
         std::ranges::any_of(spec.flows, has_slo);
}

struct Step {
  const char* purpose;
  void (*run)(Startup&);
};

constexpr Step kPlanning[] = {
    {"read the pipeline", read_pipeline},
    {"choose cores", plan_threads},
    {"compute memory", plan_memory},
};

constexpr Step kBuilding[] = {
    {"find a place for the socket", find_socket},
    {"start the packet backend", start_backend},
    {"make ports and interfaces", make_environment},
    {"build the graph", make_graph},
    {"make the packet pool", make_pool},
    {"start ports", start_ports},
    {"give up what only a start needs", give_up_rights},
    {"make the engine", make_engine},
    {"start workers and generators", start_traffic},
    {"take over control", make_runtime},
};

}  // namespace

std::vector<std::string> pci_devices(const PipelineSpec& spec) {
  static const std::regex kAddress("([0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7](,.*)?");
  std::vector<std::string> devices;
  for (const PortSpec& port : spec.ports) {
    const auto devargs = port.params.find("devargs");
    if (devargs == port.params.end() || !devargs->second.is_string()) continue;
    const std::string& text = devargs->second.as_string();
    if (text.size() < 256 && std::regex_match(text, kAddress)) devices.push_back(text);
  }
  return devices;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || !text) {
    throw ConfigError(std::string("cannot be read: ") + std::strerror(errno), path);
  }
  return text.str();
}

void plan(Startup& startup) {
  for (const Step& step : kPlanning) step.run(startup);
}

void start_packets(Startup& startup) { start_backend(startup); }

void start_up(Startup& startup) {
  plan(startup);
  for (const Step& step : kBuilding) step.run(startup);
}

Dict check_file(Startup& startup, std::vector<ConfigError>& errors) {
  plan(startup);
  start_packets(startup);
  const PipelineSpec& spec = startup.spec;
  const bool tells_routes =
      startup.options.groups_routes && spec.devices.empty() && promises_delays(spec);
  std::unique_ptr<PacketPool> pool;
  std::unique_ptr<Graph> graph;
  Dict told{{"plan", check_pipeline(spec, nullptr, nullptr, errors, &graph, tells_routes)}};
  if (!errors.empty() || !tells_routes) return told;
  // A pipeline whose routes cannot be told may run.
  (void)errors_of([&] {
    pool = pool_for_routes(spec, *graph->env);
    told["routes"] = routes_in(*graph, *pool, {}, RoutesAre::kGrouped);
  });
  return told;
}

Value route_file(Startup& startup) {
  startup.leaves_out_devices = true;
  read_pipeline(startup);
  const std::string& path = startup.options.frames_path;
  const Value frames = path.empty() ? Value() : parse_json(read_file(path), path);
  return find_routes(startup.spec, frames,
                     startup.options.groups_routes ? RoutesAre::kGrouped : RoutesAre::kEach);
}

}  // namespace batchplane::app
