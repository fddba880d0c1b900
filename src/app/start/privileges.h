// SPDX-License-Identifier: BSD-3-Clause
// privileges.h - what the daemon may do that ordinary programs may not: much while it starts, little afterwards.
#pragma once

#include <string>
#include <vector>

#include "spec/pipeline_spec.h"

namespace batchplane::app {

// Once ports are up: every thread gives up the other capabilities for good, and no_new_privs holds. Threads
// that are made later have what their maker has. Returns what is kept, by the kernel's names; throws
// ConfigError when a thread keeps more.
std::vector<std::string> drop_privileges(const PipelineSpec& spec);

}  // namespace batchplane::app
