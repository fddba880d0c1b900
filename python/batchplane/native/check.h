// SPDX-License-Identifier: BSD-3-Clause
// check.h - the rules of pipelines, as the daemon has them.
#pragma once

#include <nanobind/nanobind.h>

namespace batchplane::native {

// Adds check_pipeline.
void add_check(nanobind::module_& m);

}  // namespace batchplane::native
