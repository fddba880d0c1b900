// SPDX-License-Identifier: BSD-3-Clause
// settings.h - reads the controllers' thresholds from plain values and checks each.
#pragma once

#include "base/value.h"
#include "slo/model/controller.h"

namespace batchplane::slo {

// Takes the settings named in the dict, and the others from `base`. Throws ConfigError for an
// unknown name, a wrong type or a number out of range.
Settings settings_from(const Value& given, const Settings& base = {});

}  // namespace batchplane::slo
