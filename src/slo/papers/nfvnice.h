// SPDX-License-Identifier: BSD-3-Clause
// nfvnice.h - rate-cost proportional shares: each unit's weight is its arrival rate times what a
// packet costs it, measured over the last periods. Backpressure and early drop are the task's.
#pragma once

#include <memory>

#include "slo/model/controller.h"

namespace batchplane::slo {

std::unique_ptr<Controller> make_nfvnice(const Model& model, const Settings& settings);

}  // namespace batchplane::slo
