// SPDX-License-Identifier: BSD-3-Clause
// egress_test_util.h - pipelines in which three flows share a scheduler.
#pragma once

#include <string>
#include <vector>

#include "engine_rig.h"
#include "spec/doors.h"

namespace batchplane::egress_test {

inline constexpr uint32_t kFlows = 3;

inline std::string nth(const std::string& name, uint32_t i) { return name + std::to_string(i); }

// Each flow has its own source, on worker 0 or 1, and a queue; the scheduler is on worker 2.
inline PipelineSpec three_senders(Dict egress, uint32_t n_workers = 3) {
  PipelineSpec spec;
  for (uint32_t w = 0; w < n_workers; ++w) spec.workers.push_back({nth("w", w), -1});
  const auto add = [&](const std::string& name, const std::string& kind, Dict params,
                       uint32_t worker) {
    spec.modules.push_back({name, kind, std::move(params)});
    spec.modules.back().worker = nth("w", std::min(worker, n_workers - 1));
  };
  add("egress", "egress", std::move(egress), 2);
  spec.modules.push_back({"out", "sink", {}});
  spec.edges.push_back({"egress", "0", "out"});
  for (uint32_t f = 0; f < kFlows; ++f) {
    add(nth("in", f), "source", {{"size_bytes", 1004}}, f % 2);
    spec.modules.push_back({nth("mark", f), "set_meta", {{"mark", f}}});
    spec.edges.push_back({nth("in", f), "0", nth("mark", f)});
    add(nth("mailbox", f), "queue", {}, 2);
    spec.edges.push_back({nth("mark", f), "0", nth("mailbox", f)});
    spec.edges.push_back({nth("mailbox", f), "0", "egress"});
    spec.flows.push_back(
        {nth("flow", f), {nth("in", f), nth("mark", f), nth("mailbox", f), "egress", "out"}, 0});
  }
  return spec;
}

// The same without queues: the scheduler has a door for each worker.
inline PipelineSpec three_direct_senders(Dict egress, uint32_t n_workers = 3) {
  PipelineSpec spec = three_senders(std::move(egress), n_workers);
  std::erase_if(spec.modules, [](const ModuleSpec& module) { return module.kind == "queue"; });
  std::erase_if(spec.edges, [](const EdgeSpec& edge) { return edge.from.starts_with("mailbox"); });
  for (EdgeSpec& edge : spec.edges) {
    if (edge.to.starts_with("mailbox")) edge.to = "egress";
  }
  for (FlowSpec& flow : spec.flows) {
    std::erase_if(flow.path, [](const std::string& step) { return step.starts_with("mailbox"); });
  }
  add_doors(spec, module_kind_facts());
  return spec;
}

// Packets released by flow.
inline std::vector<uint64_t> released(EngineRig& rig) {
  std::vector<uint64_t> all;
  const Value shown = rig.engine().graph().at("egress").module->show();
  for (const Value& flow : shown["flows"].as_list()) {
    all.push_back(static_cast<uint64_t>(flow["released_pkts"].as_int()));
  }
  return all;
}

}  // namespace batchplane::egress_test
