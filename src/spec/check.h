// SPDX-License-Identifier: BSD-3-Clause
// check.h - the rules of a pipeline that follow from its text and the declarations of kinds, each in one
// place. Mistakes that only a module can detect are refused by its constructor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/task_layout.h"
#include "spec/kinds.h"
#include "spec/pipeline_spec.h"

namespace batchplane {

// An edge and a declared path by index: modules in the order of the specification.
struct SpecEdge {
  uint32_t from;
  uint32_t gate;  // exec::kDropGate: the drop gate
  uint32_t to;
};
struct SpecPath {
  std::vector<uint32_t> modules;
  std::vector<uint32_t> gates;  // of each module except the last
};
struct LinkedSpec {
  std::vector<SpecEdge> edges;
  std::vector<SpecPath> flows;
};

// Checks triggers, workers and what they share, edges, ends, cycles, reachability, flows. The result is
// complete if no mistake was recorded and all kinds are known.
LinkedSpec check_graph(const PipelineSpec& spec, const Kinds& kinds, Mistakes& mistakes);

// Checks kind and parameters of a module or a port. `ports`: names that parameters may refer to.
void check_module(const ModuleSpec& module, const Kinds& kinds,
                  const std::vector<std::string>& ports, Mistakes& mistakes);
void check_port(const PortSpec& port, const Kinds& kinds, Mistakes& mistakes);
// Checks the names in interfaces and generators, and the parameters of generators.
void check_port_users(const PipelineSpec& spec, const Kinds& kinds, Mistakes& mistakes);

[[nodiscard]] std::vector<std::string> port_names(const PipelineSpec& spec);

// All of the above.
void check_pipeline(const PipelineSpec& spec, const Kinds& kinds, Mistakes& mistakes);

// Settings that are allowed but probably not intended: ports that no module, interface or generator names,
// and departure times that no scheduler keeps.
[[nodiscard]] std::vector<ConfigError> warnings_of(const PipelineSpec& spec, const Kinds& kinds);
// Of these, the departure times.
void warn_of_departures(const PipelineSpec& spec, std::vector<ConfigError>& warnings);

}  // namespace batchplane
