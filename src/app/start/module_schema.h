// SPDX-License-Identifier: BSD-3-Clause
// module_schema.h - all that pipelines can be made of, as one value: what `batchplaned --modules`
// prints.
#pragma once

#include "base/value.h"

namespace batchplane::app {

Value schema_value();

}  // namespace batchplane::app
