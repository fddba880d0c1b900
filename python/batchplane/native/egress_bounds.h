// SPDX-License-Identifier: BSD-3-Clause
// egress_bounds.h - weights of packet schedulers for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace batchplane::native {

void add_egress_bounds(nanobind::module_& m);

}  // namespace batchplane::native
