// SPDX-License-Identifier: BSD-3-Clause
// wfq.h - the controller for the explicit model: applies the optimal batch rates as paces and
// weights of scheduling units.
#pragma once

#include <memory>

#include "slo/model/controller.h"

namespace batchplane::slo {

std::unique_ptr<Controller> make_wfq(const Model& model, const Settings& settings);

}  // namespace batchplane::slo
