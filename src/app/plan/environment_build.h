// SPDX-License-Identifier: BSD-3-Clause
// environment_build.h - ports and interfaces of a pipeline, made from its specification.
#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "core/module/environment.h"
#include "spec/kinds.h"
#include "spec/pipeline_spec.h"

namespace batchplane::app {

// What a pipeline that runs lends to the one that will replace it; all empty at the start.
struct Running {
  const PipelineSpec* spec = nullptr;
  const Environment* env = nullptr;
};

enum class PortsAre : uint8_t {
  kReal,
  kPlanned,  // described only: to check a pipeline without opening devices
  kAbsent,   // none at all: nothing comes in, and what is sent is gone
};

// What the rules of pipelines ask of the kinds that this program has.
Kinds program_kinds();

// What is allowed and hardly meant, as `check` tells it.
List warnings_value(const PipelineSpec& spec);

// Notes every mistake in ports, interfaces and generators; the environment is complete when there
// is none. Ports of the same name, kind and parameters as those that run are taken over.
std::unique_ptr<Environment> build_environment(const PipelineSpec& spec, PortsAre ports_are,
                                               const Running& running,
                                               std::vector<ConfigError>& errors);

}  // namespace batchplane::app
