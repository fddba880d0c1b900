// SPDX-License-Identifier: BSD-3-Clause
// model.h - a graph as controllers see it, from what `show model` says of it.
#pragma once

#include <vector>

#include "base/value.h"
#include "exec/control.h"
#include "slo/model/cost_pool.h"

namespace batchplane::native {

// Throws ConfigError for what is not there, and for numbers of things that are not there.
exec::ControlModel model_from(const Value& given);
// By module, as far as the model says; else none. Each module by itself, as the model does not tell which are alike.
std::vector<slo::CostEstimator::Prior> costs_from(const Value& given);

}  // namespace batchplane::native
