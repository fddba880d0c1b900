// SPDX-License-Identifier: BSD-3-Clause
// settings.h - thresholds of controllers from plain values, each checked.
#pragma once

#include "base/value.h"
#include "slo/model/controller.h"

namespace batchplane::slo {

// Those named in the dict, the others as in `base`. Throws ConfigError for an unknown name, a wrong
// type or a number out of range.
Settings settings_from(const Value& given, const Settings& base = {});

}  // namespace batchplane::slo
