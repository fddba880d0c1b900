// SPDX-License-Identifier: BSD-3-Clause
// values.h - between Python objects and the project's plain values and periods.
#pragma once

#include <nanobind/nanobind.h>

#include "base/value.h"
#include "exec/control.h"
#include "sim/recorder.h"
#include "sim/spec.h"

namespace batchplane::native {

namespace nb = nanobind;

// None, bool, int, float, str, list, tuple, dict, and what numpy makes of them. Throws
// nb::type_error.
Value to_value(nb::handle object);
nb::object to_python(const Value& value);
// A simulation; columns of numpy among its traces are copied as they are. Throws ConfigError.
sim::Spec spec_from_python(nb::dict spec);

nb::dict model_to_python(const exec::ControlModel& model);
// Columns of numpy by field, one row for each module, flow and task.
nb::dict period_to_python(const exec::PeriodSnapshot& period);
exec::PeriodSnapshot period_from_python(nb::handle period);
nb::dict decision_to_python(const exec::Decision& decision);
exec::Decision decision_from_python(nb::handle decision);
nb::dict records_to_python(const sim::Recorder& recorder);

}  // namespace batchplane::native
