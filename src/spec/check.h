// SPDX-License-Identifier: BSD-3-Clause
// check.h - the rules of a pipeline that its text and the declarations of kinds decide; the one place for
// each. What only a module itself can judge, its constructor refuses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/task_layout.h"
#include "spec/kinds.h"
#include "spec/pipeline_spec.h"

namespace batchplane {

// An edge and a declared path by numbers: modules in the order of the specification.
struct SpecEdge {
  uint32_t from;
  uint32_t gate;  // exec::kDropGate: the drop gate
  uint32_t to;
};
struct SpecPath {
  std::vector<uint32_t> modules;
  std::vector<uint32_t> gates;  // of each module but the last
};
struct LinkedSpec {
  std::vector<SpecEdge> edges;
  std::vector<SpecPath> flows;
};

// Triggers, workers and what they share, edges, ends, cycles, reach, flows. The result is whole where nothing was noted
// and all kinds are known.
LinkedSpec check_graph(const PipelineSpec& spec, const Kinds& kinds, Mistakes& mistakes);

// Kind and parameters of a module, of a port. `ports`: the names that parameters may give.
void check_module(const ModuleSpec& module, const Kinds& kinds,
                  const std::vector<std::string>& ports, Mistakes& mistakes);
void check_port(const PortSpec& port, const Kinds& kinds, Mistakes& mistakes);
// What interfaces and generators name, and the parameters of generators.
void check_port_users(const PipelineSpec& spec, const Kinds& kinds, Mistakes& mistakes);

[[nodiscard]] std::vector<std::string> port_names(const PipelineSpec& spec);

// All of the above.
void check_pipeline(const PipelineSpec& spec, const Kinds& kinds, Mistakes& mistakes);

// What is allowed and hardly meant: ports that no module, interface or generator names.
[[nodiscard]] std::vector<ConfigError> warnings_of(const PipelineSpec& spec, const Kinds& kinds);

}  // namespace batchplane
