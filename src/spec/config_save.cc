// SPDX-License-Identifier: BSD-3-Clause
// config_save.cc - writes a pipeline as canonical JSON.
#include "spec/config_json.h"

#include <charconv>
#include <set>
#include <string>
#include <vector>

#include "spec/doors.h"
#include "spec/parts.h"
#include "spec/stages.h"

namespace batchplane {
namespace {

Value core_value(int core) { return core < 0 ? Value() : Value(core); }

// A gate that is a number is written as one.
Value gate_value(const std::string& gate) {
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(gate.data(), gate.data() + gate.size(), number);
  const bool is_number = error == std::errc() && stop == gate.data() + gate.size();
  return is_number ? Value(number) : Value(gate);
}

List strings_value(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

Dict execution_value(const exec::Scheduling& how) {
  return {{"mode", exec::kExecutionNames[static_cast<size_t>(how.mode)]},
          {"schedule_by", exec::kScheduleByNames[static_cast<size_t>(how.by)]},
          {"backpressure", exec::kBackpressureNames[static_cast<size_t>(how.backpressure)]},
          {"queue_pkts", how.queue_pkts},
          {"high_watermark_percent", how.high_watermark_percent},
          {"low_watermark_percent", how.low_watermark_percent},
          {"queueing_time_threshold_ns", how.queueing_time_threshold_ns},
          {"input_weight", how.input_weight}};
}

Dict engine_value(const EngineSpec& engine) {
  Dict out{{"batch_pkts", engine.batch_pkts},
           {"pool_pkts", engine.pool_pkts},
           {"idle", engine.is_idle_hold ? "hold" : "release"},
           {"stranding_limit_ns", engine.stranding_limit_ns},
           {"sample_one_run_in", engine.sample_one_run_in},
           {"seed", engine.seed}};
  if (engine.execution != exec::Scheduling{}) out["execution"] = execution_value(engine.execution);
  if (engine.runs_by_deadline) {
    out["run_order"] = "deadline";
    out["heavy_ns"] = engine.heavy_ns;
  }
  return out;
}

// A core that an earlier worker has was given out when none was free: pipelines name each core once.
List workers_value(const std::vector<WorkerSpec>& workers) {
  List list;
  std::set<int> taken;
  for (const WorkerSpec& worker : workers) {
    const bool has_own = taken.insert(worker.core).second;
    Dict out{{"name", worker.name}, {"core", core_value(has_own ? worker.core : -1)}};
    if (worker.is_shared) out["shared"] = true;
    if (worker.execution) out["execution"] = execution_value(*worker.execution);
    list.emplace_back(std::move(out));
  }
  return list;
}

Dict module_value(const ModuleSpec& module) {
  Dict out{{"kind", module.kind},
           {"params", module.params},
           {"trigger_pkts", module.trigger_pkts},
           {"age_limit_ns", module.age_limit_ns == 0 ? Value() : Value(module.age_limit_ns)}};
  if (!module.worker.empty()) out["worker"] = module.worker;
  if (module.weight != 0) out["weight"] = module.weight;
  if (module.queue_pkts != 0) out["queue_pkts"] = module.queue_pkts;
  if (module.poll_pkts != 0) out["poll_pkts"] = module.poll_pkts;
  if (!module.device.is_null()) out["device"] = module.device;
  if (!module.in_queue.is_null()) out["in_queue"] = module.in_queue;
  return out;
}

Dict interface_value(const InterfaceSpec& interface) {
  Dict out{{"name", interface.name},
           {"mtu_bytes", interface.mtu_bytes},
           {"addresses", strings_value(interface.addresses)}};
  if (!interface.port.empty()) out["port"] = interface.port;
  if (!interface.mac.empty()) out["mac"] = interface.mac;
  return out;
}

template <class T, class Write>
List list_value(const std::vector<T>& all, Write write) {
  List out;
  for (const T& one : all) out.emplace_back(write(one));
  return out;
}

}  // namespace

Value spec_to_value(const PipelineSpec& as_built) {
  PipelineSpec running = without_doors(as_built);
  note_in_queues(running);
  const PipelineSpec spec = without_stages(without_parts(running));
  Dict modules;
  for (const ModuleSpec& module : spec.modules) modules[module.name] = module_value(module);
  Dict ports;
  for (const PortSpec& port : spec.ports) {
    ports[port.name] = Dict{{"kind", port.kind}, {"params", port.params}};
  }
  Dict devices;
  for (const DeviceSpec& device : spec.devices) {
    devices[device.name] = Dict{{"kind", device.kind}, {"params", device.params}};
  }
  Dict source_map;
  for (const auto& [key, line] : spec.source_map) source_map[key] = line;
  Dict pipeline{
      {"version", kPipelineVersion},
      {"name", spec.name},
      {"engine", engine_value(spec.engine)},
      {"workers", workers_value(spec.workers)},
      {"ports", std::move(ports)},
      {"interfaces", list_value(spec.interfaces, interface_value)},
      {"modules", std::move(modules)},
      {"edges",
       list_value(
           spec.edges,
           [](const EdgeSpec& edge) {
             return Dict{{"from", edge.from}, {"gate", gate_value(edge.gate)}, {"to", edge.to}};
           })},
      {"flows", list_value(spec.flows,
                           [](const FlowSpec& flow) {
                             return Dict{{"name", flow.name},
                                         {"path", strings_value(flow.path)},
                                         {"delay_slo_ns", flow.delay_slo_ns}};
                           })},
      {"generators", list_value(spec.generators,
                                [](const GeneratorSpec& generator) {
                                  return Dict{{"name", generator.name},
                                              {"port", generator.port},
                                              {"core", core_value(generator.core)},
                                              {"params", generator.params}};
                                })},
      {"source_map", std::move(source_map)}};
  if (!devices.empty()) pipeline["devices"] = std::move(devices);
  if (!spec.placement.is_null()) pipeline["placement"] = spec.placement;
  if (!spec.controller.is_null()) pipeline["controller"] = spec.controller;
  return pipeline;
}

}  // namespace batchplane
