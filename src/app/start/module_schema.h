// SPDX-License-Identifier: BSD-3-Clause
// module_schema.h - everything that pipelines can be made of, as one value: the output of `batchplaned
// --modules`.
#pragma once

#include "base/value.h"

namespace batchplane::app {

Value schema_value();

}  // namespace batchplane::app
