// SPDX-License-Identifier: BSD-3-Clause
// config_json.cc - reads each section of a pipeline.
#include "spec/config_json.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/nearest_word.h"
#include "exec/batch.h"
#include "spec/field_reader.h"

namespace batchplane {
namespace {

constexpr uint32_t kMaxWorkers = 64;

std::string element(const std::string& list, size_t i) {
  return list + "[" + std::to_string(i) + "]";
}

Dict params_of(FieldReader& fields) {
  const Dict* params = fields.dict("params");
  return params == nullptr ? Dict{} : *params;
}

// One of a few words, with a default.
template <class Enum, size_t kWords>
Enum choice(FieldReader& fields, const std::string& name, const char* const (&words)[kWords],
            Enum fallback) {
  const std::string given = fields.string(name, words[static_cast<size_t>(fallback)]);
  std::string list;
  for (size_t i = 0; i < kWords; ++i) {
    if (given == words[i]) return static_cast<Enum>(i);
    list += (i == 0 ? "" : i + 1 == kWords ? " or " : ", ") + std::string(words[i]);
  }
  fields.mistake(name, "'" + given + "' is unknown", list);
  return fallback;
}

exec::Scheduling read_execution(const Value& value, const std::string& key,
                                exec::Scheduling fallback, Mistakes& mistakes) {
  if (value.is_null()) return fallback;
  FieldReader fields(value, key, mistakes);
  exec::Scheduling how = fallback;
  how.mode = choice(fields, "mode", exec::kExecutionNames, fallback.mode);
  how.by = choice(fields, "schedule_by", exec::kScheduleByNames, fallback.by);
  how.backpressure =
      choice(fields, "backpressure", exec::kBackpressureNames, fallback.backpressure);
  how.queue_pkts = fields.integer32("queue_pkts", fallback.queue_pkts, limits::kTaskQueuePkts);
  how.high_watermark_percent = fields.integer32(
      "high_watermark_percent", fallback.high_watermark_percent, limits::kHighWatermarkPercent);
  how.low_watermark_percent = fields.integer32(
      "low_watermark_percent", fallback.low_watermark_percent, limits::kLowWatermarkPercent);
  how.queueing_time_threshold_ns =
      fields.integer("queueing_time_threshold_ns", fallback.queueing_time_threshold_ns,
                     limits::kQueueingTimeThresholdNs);
  how.input_weight = fields.integer32("input_weight", fallback.input_weight, limits::kWeight);
  if (how.low_watermark_percent > how.high_watermark_percent) {
    fields.mistake("low_watermark_percent", "the low watermark is above the high one",
                   "give one below high_watermark_percent");
  }
  fields.finish();
  return how;
}

EngineSpec read_engine(const Value& value, Mistakes& mistakes) {
  EngineSpec engine;
  if (value.is_null()) return engine;
  FieldReader fields(value, "engine", mistakes);
  engine.batch_pkts = fields.integer32("batch_pkts", engine.batch_pkts, limits::kBatchPkts);
  engine.pool_pkts = fields.integer32("pool_pkts", 0, limits::kPoolPkts);
  const std::string idle = fields.string("idle", "release");
  if (idle != "release" && idle != "hold") {
    fields.mistake("idle", "'" + idle + "' is no idle mode", "release or hold");
  }
  engine.is_idle_hold = idle == "hold";
  engine.stranding_limit_ns =
      fields.integer("stranding_limit_ns", engine.stranding_limit_ns, limits::kStrandingLimitNs);
  engine.sample_one_run_in =
      fields.integer32("sample_one_run_in", engine.sample_one_run_in, limits::kSampleOneRunIn);
  const std::string order = fields.string("run_order", "depth");
  if (order != "depth" && order != "deadline") {
    fields.mistake("run_order", "'" + order + "' is no run order", "depth or deadline");
  }
  engine.runs_by_deadline = order == "deadline";
  engine.heavy_ns = fields.integer("heavy_ns", engine.heavy_ns, limits::kHeavyNs);
  engine.seed = fields.integer("seed", engine.seed, limits::kSeed);
  engine.execution =
      read_execution(fields.any("execution"), "engine.execution", engine.execution, mistakes);
  fields.finish();
  return engine;
}

ModuleSpec read_module(const std::string& name, const Value& value, Mistakes& mistakes) {
  FieldReader fields(value, "modules." + name, mistakes);
  ModuleSpec module;
  module.name = name;
  if (name.empty()) fields.mistake("", "a module has an empty name");
  module.kind = fields.required_string("kind");
  module.params = params_of(fields);
  module.trigger_pkts = fields.integer32("trigger_pkts", 0, limits::kTriggerPkts);
  module.age_limit_ns = fields.integer("age_limit_ns", 0, limits::kAgeLimitNs);
  module.worker = fields.string("worker");
  module.weight = fields.integer32("weight", 0, limits::kWeight);
  module.queue_pkts = fields.integer32("queue_pkts", 0, limits::kQueuePkts);
  module.poll_pkts = fields.integer32("poll_pkts", 0, limits::kPollPkts);
  const Dict* const device = fields.dict("device");
  if (device != nullptr) module.device = *device;
  const Dict* const in_queue = fields.dict("in_queue");
  if (in_queue != nullptr) {
    module.in_queue = *in_queue;  // the queue reads its parameters itself
    FieldReader queue(module.in_queue, "modules." + name + ".in_queue", mistakes);
    (void)queue.integer32("poll_pkts", 0, limits::kPollPkts);
  }
  fields.finish();
  return module;
}

EdgeSpec read_edge(const Value& value, const std::string& key, Mistakes& mistakes) {
  FieldReader fields(value, key, mistakes);
  EdgeSpec edge;
  edge.from = fields.required_string("from");
  edge.to = fields.required_string("to");
  const Value& gate = fields.any("gate");
  if (gate.is_null()) {
    edge.gate = "0";
  } else if (gate.is_int() && gate.as_int() >= 0) {
    edge.gate = std::to_string(gate.as_int());
  } else if (gate.is_string() && !gate.as_string().empty()) {
    edge.gate = gate.as_string();
  } else {
    fields.mistake("gate", "expected a gate number or name");
  }
  fields.finish();
  return edge;
}

FlowSpec read_flow(const Value& value, const std::string& key, Mistakes& mistakes) {
  FieldReader fields(value, key, mistakes);
  FlowSpec flow;
  flow.name = fields.required_string("name");
  flow.path = fields.strings("path");
  flow.delay_slo_ns = fields.integer("delay_slo_ns", 0, limits::kDelaySloNs);
  fields.finish();
  return flow;
}

DeviceSpec read_device(const std::string& name, const Value& value, Mistakes& mistakes) {
  FieldReader fields(value, "devices." + name, mistakes);
  DeviceSpec device;
  device.name = name;
  device.kind = fields.required_string("kind");
  device.params = params_of(fields);
  fields.finish();
  return device;
}

PortSpec read_port(const std::string& name, const Value& value, Mistakes& mistakes) {
  FieldReader fields(value, "ports." + name, mistakes);
  PortSpec port;
  port.name = name;
  port.kind = fields.required_string("kind");
  port.params = params_of(fields);
  fields.finish();
  return port;
}

InterfaceSpec read_interface(const Value& value, const std::string& key, Mistakes& mistakes) {
  FieldReader fields(value, key, mistakes);
  InterfaceSpec interface;
  interface.name = fields.required_string("name");
  interface.port = fields.string("port");
  interface.mac = fields.string("mac");
  interface.mtu_bytes = fields.integer32("mtu_bytes", 1500, limits::kMtuBytes);
  interface.addresses = fields.strings("addresses");
  fields.finish();
  return interface;
}

WorkerSpec read_worker(const Value& value, const std::string& key, const exec::Scheduling& engine,
                       Mistakes& mistakes) {
  FieldReader fields(value, key, mistakes);
  WorkerSpec worker;
  worker.name = fields.required_string("name");
  worker.core = fields.core("core");
  const Value& execution = fields.any("execution");
  if (!execution.is_null()) {
    worker.execution = read_execution(execution, key + ".execution", engine, mistakes);
  }
  const Value& shared = fields.any("shared");
  if (!shared.is_null() && !shared.is_bool()) {
    mistakes.add(key + ".shared", "expected true or false");
  }
  worker.is_shared = shared.is_bool() && shared.as_bool();
  if (worker.is_shared && worker.core >= 0) {
    mistakes.add(key + ".core", "a shared worker has no core", "the other workers run its tasks");
  }
  fields.finish();
  return worker;
}

GeneratorSpec read_generator(const Value& value, const std::string& key, Mistakes& mistakes) {
  FieldReader fields(value, key, mistakes);
  GeneratorSpec generator;
  generator.name = fields.required_string("name");
  generator.port = fields.required_string("port");
  generator.core = fields.core("core");
  generator.params = params_of(fields);
  fields.finish();
  return generator;
}

// Which controllers and settings exist is checked elsewhere.
Value read_controller(const Value& value, Mistakes& mistakes) {
  if (value.is_null()) return {};
  FieldReader fields(value, "controller", mistakes);
  fields.required_string("name");
  fields.integer("period_ns", 0, limits::kPeriodNs);
  fields.dict("settings");
  fields.dict("costs");
  fields.dict("hop_costs");
  fields.string("costs_origin");
  fields.string("costs_file");
  fields.finish();
  return value;
}

// Reads the elements of a list section one by one.
template <class T, class Read>
std::vector<T> read_list(FieldReader& fields, const std::string& name, Mistakes& mistakes,
                         Read read) {
  std::vector<T> all;
  const List* list = fields.list(name);
  if (list == nullptr) return all;
  for (size_t i = 0; i < list->size(); ++i) {
    all.push_back(read((*list)[i], element(name, i), mistakes));
  }
  return all;
}

template <class T, class Read>
std::vector<T> read_named(FieldReader& fields, const std::string& name, Mistakes& mistakes,
                          Read read) {
  std::vector<T> all;
  const Dict* dict = fields.dict(name);
  if (dict == nullptr) return all;
  for (const auto& [key, value] : *dict) all.push_back(read(key, value, mistakes));
  return all;
}

template <class T>
void refuse_doubles(const std::vector<T>& all, const std::string& list, Mistakes& mistakes) {
  std::set<std::string> seen;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name.empty() || seen.insert(all[i].name).second) continue;
    mistakes.add(element(list, i), "the name '" + all[i].name + "' is used twice",
                 "names are unique");
  }
}

// Limits the count, since later checks take time and memory for each element.
void refuse_more(size_t count, uint64_t most, const std::string& section, Mistakes& mistakes) {
  if (count <= most) return;
  mistakes.add(section, "more than " + std::to_string(most) + " " + section,
               "there are " + std::to_string(count));
}

void read_version(FieldReader& fields) {
  const Value& version = fields.any("version");
  if (version.is_int() && version.as_int() == kPipelineVersion) return;
  fields.mistake(
      "version",
      version.is_null() ? "'version' is missing" : "this version of the format is unknown",
      "version " + std::to_string(kPipelineVersion) + " is what this program reads");
}

SourceMap read_source_map(const Value& pipeline) {
  SourceMap map;
  const Value& given = pipeline["source_map"];
  if (!given.is_dict()) return map;
  for (const auto& [key, value] : given.as_dict()) {
    if (value.is_string()) map[key] = value.as_string();
  }
  return map;
}

void refuse_bad_source_map(FieldReader& fields) {
  const Dict* map = fields.dict("source_map");
  if (map == nullptr) return;
  for (const auto& [key, value] : *map) {
    if (!value.is_string()) fields.mistake("source_map", "'" + key + "' leads to no string");
  }
}

void refuse_shared_cores(const PipelineSpec& spec, Mistakes& mistakes) {
  std::map<int, std::string> owners;
  for (size_t i = 0; i < spec.workers.size(); ++i) {
    const WorkerSpec& worker = spec.workers[i];
    if (worker.core < 0) continue;
    const auto [owner, is_first] = owners.emplace(worker.core, worker.name);
    if (is_first) continue;
    mistakes.add(
        element("workers", i),
        "core " + std::to_string(worker.core) + " is already used by '" + owner->second + "'",
        "each worker has a core of its own");
  }
}

void refuse_shared_only(const PipelineSpec& spec, Mistakes& mistakes) {
  const bool has_thread =
      std::ranges::any_of(spec.workers, [](const WorkerSpec& worker) { return !worker.is_shared; });
  if (has_thread || spec.workers.empty()) return;
  mistakes.add("workers", "all workers are shared, so none has a thread to run them",
               "leave out `shared` at one of them");
}

// A unit that waits for a full batch needs room for one more.
void refuse_short_queues(const PipelineSpec& spec, Mistakes& mistakes) {
  const uint32_t min_pkts = 2 * spec.engine.batch_pkts;
  const auto check = [&](uint32_t queue_pkts, const std::string& key) {
    if (queue_pkts == 0 || queue_pkts >= min_pkts) return;
    mistakes.add(
        key + ".queue_pkts",
        "a queue of " + std::to_string(queue_pkts) + " packets has no room for two batches",
        std::to_string(min_pkts) + " at least (engine.batch_pkts is " +
            std::to_string(spec.engine.batch_pkts) + ")");
  };
  check(spec.engine.execution.queue_pkts, "engine.execution");
  for (size_t i = 0; i < spec.workers.size(); ++i) {
    const auto& execution = spec.workers[i].execution;
    if (execution) check(execution->queue_pkts, element("workers", i) + ".execution");
  }
  for (const ModuleSpec& module : spec.modules) check(module.queue_pkts, "modules." + module.name);
}

// Units take turns by weight: a run order has nothing left to decide.
void refuse_two_orders(const PipelineSpec& spec, Mistakes& mistakes) {
  if (!spec.engine.runs_by_deadline) return;
  const bool is_weighted = spec.engine.execution.is_weighted_fair() ||
                           std::ranges::any_of(spec.workers, [](const WorkerSpec& worker) {
                             return worker.execution && worker.execution->is_weighted_fair();
                           });
  if (is_weighted) {
    mistakes.add("engine.run_order", "under execution: wfq units take turns by weight",
                 "run_order: depth, or execution: run_to_completion");
  }
}

}  // namespace

PipelineSpec spec_from_value(const Value& pipeline, std::vector<ConfigError>& errors) {
  PipelineSpec spec;
  spec.source_map = read_source_map(pipeline);
  Mistakes mistakes{errors, spec.source_map};
  FieldReader fields(pipeline, "", mistakes);
  if (!pipeline.is_dict()) return spec;
  read_version(fields);
  refuse_bad_source_map(fields);
  spec.name = fields.string("name", "pipeline");
  spec.engine = read_engine(fields.any("engine"), mistakes);
  spec.workers =
      read_list<WorkerSpec>(fields, "workers", mistakes,
                            [&](const Value& value, const std::string& key, Mistakes& notes) {
                              return read_worker(value, key, spec.engine.execution, notes);
                            });
  spec.ports = read_named<PortSpec>(fields, "ports", mistakes, read_port);
  spec.devices = read_named<DeviceSpec>(fields, "devices", mistakes, read_device);
  spec.interfaces = read_list<InterfaceSpec>(fields, "interfaces", mistakes, read_interface);
  if (!fields.has("modules")) fields.mistake("modules", "'modules' is missing", "add it");
  spec.modules = read_named<ModuleSpec>(fields, "modules", mistakes, read_module);
  spec.edges = read_list<EdgeSpec>(fields, "edges", mistakes, read_edge);
  spec.flows = read_list<FlowSpec>(fields, "flows", mistakes, read_flow);
  spec.generators = read_list<GeneratorSpec>(fields, "generators", mistakes, read_generator);
  spec.controller = read_controller(fields.any("controller"), mistakes);
  if (const Dict* const placement = fields.dict("placement"); placement != nullptr)
    spec.placement = *placement;
  fields.finish();
  refuse_shared_cores(spec, mistakes);
  refuse_shared_only(spec, mistakes);
  refuse_short_queues(spec, mistakes);
  refuse_two_orders(spec, mistakes);
  refuse_doubles(spec.workers, "workers", mistakes);
  refuse_doubles(spec.interfaces, "interfaces", mistakes);
  refuse_doubles(spec.generators, "generators", mistakes);
  refuse_more(spec.workers.size(), kMaxWorkers, "workers", mistakes);
  refuse_more(spec.modules.size(), limits::kModules.most, "modules", mistakes);
  refuse_more(spec.edges.size(), limits::kEdges.most, "edges", mistakes);
  refuse_more(spec.flows.size(), limits::kFlows.most, "flows", mistakes);
  return spec;
}

}  // namespace batchplane
