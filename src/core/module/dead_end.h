// SPDX-License-Identifier: BSD-3-Clause
// dead_end.h - where a gate leads that nothing is connected to: packets are dropped and counted.
#pragma once

#include <memory>

#include "core/module/kind.h"

namespace batchplane {

[[nodiscard]] const ModuleInfo& dead_end_info();
[[nodiscard]] std::unique_ptr<Module> make_dead_end();

}  // namespace batchplane
