// SPDX-License-Identifier: BSD-3-Clause
// fixed.h - a controller that sets the same constant trigger at every controlled module.
#pragma once

#include <memory>
#include <string>

#include "slo/model/controller.h"

namespace batchplane::slo {

// trigger_pkts in 0..B.
std::unique_ptr<Controller> make_fixed(std::string name, const Model& model,
                                       const Settings& settings, uint32_t trigger_pkts);

}  // namespace batchplane::slo
