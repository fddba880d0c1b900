// SPDX-License-Identifier: BSD-3-Clause
// program.h - the model's program and its solver as functions of plain arrays, so that
// another solver can be set beside ours.
#pragma once

#include <nanobind/nanobind.h>

namespace batchplane::native {

// Adds solve_program, relax_program and evaluate_program.
void add_program_functions(nanobind::module_& m);

}  // namespace batchplane::native
