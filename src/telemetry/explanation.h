// SPDX-License-Identifier: BSD-3-Clause
// explanation.h - a controller's explanations as plain values.
#pragma once

#include "base/value.h"
#include "slo/model/explanation.h"

namespace batchplane::telemetry {

Value flow_value(const slo::FlowExplanation& flow, const exec::ControlFlow& of,
                 const exec::ControlModel& model);
Value module_value(const slo::ModuleExplanation& module, const exec::ControlModel& model);
// {"flows", "modules"}
Value explanation_value(const slo::Explanation& explained, const exec::ControlModel& model);

}  // namespace batchplane::telemetry
