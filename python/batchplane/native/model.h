// SPDX-License-Identifier: BSD-3-Clause
// model.h - a graph as controllers see it, from what `show model` says of it.
#pragma once

#include <vector>

#include "base/cost_law.h"
#include "base/value.h"
#include "exec/control.h"

namespace batchplane::native {

// Throws ConfigError for what is not there, and for numbers of things that are not there.
exec::ControlModel model_from(const Value& given);
// By module, as far as the model says; else none.
std::vector<CostLaw> costs_from(const Value& given);

}  // namespace batchplane::native
