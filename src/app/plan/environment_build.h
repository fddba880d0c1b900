// SPDX-License-Identifier: BSD-3-Clause
// environment_build.h - makes the ports and interfaces of a pipeline from its specification.
#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "core/module/environment.h"
#include "spec/kinds.h"
#include "spec/pipeline_spec.h"

namespace batchplane::app {

// What the running pipeline lends to its successor; all null at the start.
struct Running {
  const PipelineSpec* spec = nullptr;
  const Environment* env = nullptr;
};

enum class PortsAre : uint8_t {
  kReal,
  kPlanned,  // described only: to check a pipeline without opening devices
  kAbsent,   // none: nothing arrives, and sent packets are freed
};

// Facts about this program's kinds for the rules of pipelines.
Kinds program_kinds();

// Settings that are allowed but probably not intended, for `check`.
List warnings_value(const PipelineSpec& spec);

// Collects all mistakes in ports, interfaces and generators; the environment is complete when there are none.
// Running ports with the same name, kind and parameters are taken over.
std::unique_ptr<Environment> build_environment(const PipelineSpec& spec, PortsAre ports_are,
                                               const Running& running,
                                               std::vector<ConfigError>& errors);

}  // namespace batchplane::app
