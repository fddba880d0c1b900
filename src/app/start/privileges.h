// SPDX-License-Identifier: BSD-3-Clause
// privileges.h - the daemon's privileges: many while it starts, few afterwards.
#pragma once

#include <string>
#include <vector>

#include "spec/pipeline_spec.h"

namespace batchplane::app {

// Call once ports are up: every thread drops the other capabilities for good, and no_new_privs is set. New
// threads inherit from their creator. Returns the kernel's names of the capabilities kept; throws ConfigError
// when a thread keeps more.
std::vector<std::string> drop_privileges(const PipelineSpec& spec);

}  // namespace batchplane::app
