// SPDX-License-Identifier: BSD-3-Clause
// profile_run.h - `batchplaned --profile`: measures a pipeline's modules and prints the costs as JSON,
// instead of running the pipeline.
#pragma once

#include <string>

#include "app/start/startup.h"
#include "profile/loop_costs.h"
#include "profile/profile.h"

namespace batchplane::app {

inline constexpr int64_t kProfileVersion = 2;

// What to measure: {"groups": [["a", "b"], ..], "ms_per_module": 300, "passes": 4, "loop": true, "feeders":
// {"near": "far"}}; every key is optional. Throws ConfigErrors.
struct ProfileRequest {
  profile::Options options;
  bool has_loop = true;
};
ProfileRequest profile_request_from(const Value& value, const PipelineSpec& spec);

// A list of names. Throws ConfigError for an unknown module.
std::vector<std::string> modules_from(const Value& value, const PipelineSpec& spec,
                                      const std::string& where);

// An entry of a costs file.
Value profile_value(const profile::ModuleProfile& p, const std::string& kind,
                    const std::string& note, uint32_t batch_limit_pkts);

// Measures on the worker's core; progress goes to stderr. Throws ConfigErrors.
Value run_profile(Startup& startup, const std::string& request_path);

}  // namespace batchplane::app
