// SPDX-License-Identifier: BSD-3-Clause
// nfvnice.h - rate-cost proportional shares: a unit's weight is its arrival rate times its cost per
// packet, measured over the last periods. Backpressure and early drop are done by the task.
#pragma once

#include <memory>

#include "slo/model/controller.h"

namespace batchplane::slo {

std::unique_ptr<Controller> make_nfvnice(const Model& model, const Settings& settings);

}  // namespace batchplane::slo
