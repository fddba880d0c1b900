// SPDX-License-Identifier: BSD-3-Clause
#include "spec/stages.h"

#include <algorithm>
#include <set>

namespace batchplane {
namespace {

constexpr const char* kDone = "/done";

bool ends_in(const std::string& text, const std::string& end) { return text.ends_with(end); }

std::string offloadable(const Kinds& kinds) {
  std::string names;
  for (const auto& [kind, facts] : kinds.modules) {
    if (!ends_in(kind, kStageSuffix)) continue;
    names += (names.empty() ? "" : ", ") +
             kind.substr(0, kind.size() - std::string(kStageSuffix).size());
  }
  return names;
}

// The worker that brings a module its packets: that of an input or queue before it.
std::string feeding_worker(const PipelineSpec& spec, const std::string& module,
                           const Kinds& kinds) {
  std::vector<std::string> todo{module};
  std::set<std::string> seen{module};
  while (!todo.empty()) {
    const std::string to = todo.back();
    todo.pop_back();
    for (const EdgeSpec& edge : spec.edges) {
      if (edge.to != to || !seen.insert(edge.from).second) continue;
      const auto from = std::ranges::find(spec.modules, edge.from, &ModuleSpec::name);
      if (from == spec.modules.end()) continue;
      const auto kind = kinds.modules.find(from->kind);
      const bool begins = kind != kinds.modules.end() && kind->second.begins_task();
      if (begins) return from->worker;
      todo.push_back(edge.from);
    }
  }
  return "";
}

void lead_through(std::vector<std::string>& path, const std::string& stage) {
  for (size_t i = 0; i < path.size(); ++i) {
    const size_t colon = std::min(path[i].find(':'), path[i].size());
    if (path[i].substr(0, colon) != stage) continue;
    const std::string gate = path[i].substr(colon);
    path[i] = stage;
    path.insert(path.begin() + static_cast<std::ptrdiff_t>(i) + 1, results_name(stage) + gate);
    ++i;
  }
}

void divide(PipelineSpec& spec, size_t m, const Kinds& kinds) {
  const std::string worker = feeding_worker(spec, spec.modules[m].name, kinds);
  ModuleSpec& stage = spec.modules[m];
  ModuleSpec results;
  results.name = results_name(stage.name);
  results.kind = stage.kind + kResultsSuffix;
  stage.kind += kStageSuffix;
  stage.params["device"] = stage.device;
  if (stage.worker.empty()) stage.worker = worker;
  for (EdgeSpec& edge : spec.edges) {
    if (edge.from == stage.name) edge.from = results.name;
  }
  spec.edges.push_back({stage.name, "0", results.name});
  for (FlowSpec& flow : spec.flows) lead_through(flow.path, stage.name);
  spec.modules.push_back(std::move(results));
}

}  // namespace

std::string results_name(const std::string& stage) { return stage + kDone; }
std::string stage_of_results(const std::string& results) {
  return results.substr(0, results.size() - std::string(kDone).size());
}

void add_stages(PipelineSpec& spec, const Kinds& kinds, Mistakes& mistakes) {
  const size_t n_modules = spec.modules.size();
  for (size_t m = 0; m < n_modules; ++m) {
    const ModuleSpec& module = spec.modules[m];
    if (module.device.is_null() || !kinds.modules.contains(module.kind)) continue;
    if (!kinds.modules.contains(module.kind + kStageSuffix)) {
      mistakes.add("modules." + module.name + ".device", "a " + module.kind + " runs on no device",
                   "those that do: " + offloadable(kinds));
      continue;
    }
    divide(spec, m, kinds);
  }
}

void leave_out_devices(PipelineSpec& spec) {
  spec.devices.clear();
  for (ModuleSpec& module : spec.modules) {
    if (module.device.is_null()) continue;
    module.device = Value();
    module.worker.clear();  // the worker that would poll it
  }
}

PipelineSpec without_stages(const PipelineSpec& spec) {
  PipelineSpec written = spec;
  for (ModuleSpec& module : written.modules) {
    if (module.device.is_null() || !ends_in(module.kind, kStageSuffix)) continue;
    const std::string results = results_name(module.name);
    module.kind.resize(module.kind.size() - std::string(kStageSuffix).size());
    const auto device = module.params.find("device");
    if (device != module.params.end()) {
      module.device = device->second;
      module.params.erase(device);
    }
    std::erase_if(written.edges, [&](const EdgeSpec& edge) { return edge.to == results; });
    for (EdgeSpec& edge : written.edges) {
      if (edge.from == results) edge.from = module.name;
    }
    for (FlowSpec& flow : written.flows) {
      for (std::string& step : flow.path) {
        if (step.substr(0, step.find(':')) == results)
          step = module.name + step.substr(results.size());
      }
      const auto doubled = std::ranges::adjacent_find(flow.path, [&](const auto& a, const auto& b) {
        return a == module.name && b.substr(0, b.find(':')) == module.name;
      });
      if (doubled != flow.path.end()) flow.path.erase(doubled);
    }
  }
  std::erase_if(written.modules,
                [](const ModuleSpec& module) { return ends_in(module.kind, kResultsSuffix); });
  return written;
}

}  // namespace batchplane
