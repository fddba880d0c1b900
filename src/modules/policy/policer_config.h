// SPDX-License-Identifier: BSD-3-Clause
// policer_config.h - a policer's rates, bursts and actions, from its parameters.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/module/args.h"
#include "modules/policy/dscp_field.h"
#include "modules/policy/policer_meter.h"

namespace batchplane {

struct ColourAction {
  enum class Kind : uint8_t { kPermit, kDrop, kSetDscp };
  Kind kind = Kind::kPermit;
  uint8_t dscp = 0;
};

// Read by the worker; replaced as a whole.
struct PolicerConfig {
  MeterProfile profile;
  std::array<ColourAction, kColours> actions;
  std::array<uint8_t, kDscpValues> colour_of_dscp{};
  uint32_t overhead_bytes = 0;
  bool is_aware = false;
  bool has_actions = false;  // some colour has an action other than to pass
};

// Checks the parameters that may change while a policer runs, also against each other. `params`
// must contain all of them; throws ConfigError below `where`.
PolicerConfig make_policer_config(bool is_two_rate, const Dict& params, const std::string& where);

// The parameters that make_policer_config reads.
const std::vector<ParamSpec>& live_policer_params();

}  // namespace batchplane
