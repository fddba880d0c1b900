// SPDX-License-Identifier: BSD-3-Clause
// onoff.h - the paper's simplest SLO-based controller: each buffer is either bypassed or full.
#pragma once

#include <memory>

#include "slo/model/controller.h"

namespace batchplane::slo {

std::unique_ptr<Controller> make_onoff(const Model& model, const Settings& settings);

}  // namespace batchplane::slo
