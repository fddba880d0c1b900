// SPDX-License-Identifier: BSD-3-Clause
// egress.h - packet schedulers for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace batchplane::native {

void add_egress(nanobind::module_& m);

}  // namespace batchplane::native
