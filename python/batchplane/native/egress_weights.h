// SPDX-License-Identifier: BSD-3-Clause
// egress_weights.h - weights of packet schedulers for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace batchplane::native {

void add_egress_weights(nanobind::module_& m);

}  // namespace batchplane::native
