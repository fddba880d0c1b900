// SPDX-License-Identifier: BSD-3-Clause
// without_weights.h - lets controllers that set no weights take over from those that do.
#pragma once

#include <memory>

#include "slo/model/controller.h"

namespace batchplane::slo {

// Wraps the controller so that its first step also restores the inputs' weights from the pipeline
// and ends paces. Returns it unchanged if no task of the model schedules its queues.
std::unique_ptr<Controller> without_weights(std::unique_ptr<Controller> controller,
                                            const Model& model);

}  // namespace batchplane::slo
