// SPDX-License-Identifier: BSD-3-Clause
// plan.h - plans for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace batchplane::native {

void add_plan(nanobind::module_& m);

}  // namespace batchplane::native
