// SPDX-License-Identifier: BSD-3-Clause
// dead_end.h - the target of unconnected gates: drops and counts packets.
#pragma once

#include <memory>

#include "core/module/kind.h"

namespace batchplane {

[[nodiscard]] const ModuleInfo& dead_end_info();
[[nodiscard]] std::unique_ptr<Module> make_dead_end();

}  // namespace batchplane
