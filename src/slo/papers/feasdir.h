// SPDX-License-Identifier: BSD-3-Clause
// feasdir.h - the method of feasible directions: each period moves one module along its own
// gradient, as far as the flows allow.
#pragma once

#include <memory>

#include "slo/model/controller.h"

namespace batchplane::slo {

std::unique_ptr<Controller> make_feasdir(const Model& model, const Settings& settings);

}  // namespace batchplane::slo
