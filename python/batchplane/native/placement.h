// SPDX-License-Identifier: BSD-3-Clause
// placement.h - plans for devices, and what comes of them, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace batchplane::native {

void add_placement(nanobind::module_& m);

}  // namespace batchplane::native
