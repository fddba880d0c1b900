// SPDX-License-Identifier: BSD-3-Clause
// controller.h - the controllers for programs that run batches of their own.
#pragma once

#include <nanobind/nanobind.h>

namespace batchplane::native {

// Adds the class Controller.
void add_controller(nanobind::module_& m);

}  // namespace batchplane::native
