// SPDX-License-Identifier: BSD-3-Clause
// onoff.h - the paper's simplest controller that looks at SLOs: a buffer is bypassed or full.
#pragma once

#include <memory>

#include "slo/model/controller.h"

namespace batchplane::slo {

std::unique_ptr<Controller> make_onoff(const Model& model, const Settings& settings);

}  // namespace batchplane::slo
