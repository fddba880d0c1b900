// SPDX-License-Identifier: BSD-3-Clause
// without_weights.h - controllers that know no weights take over from those that set them.
#pragma once

#include <memory>

#include "slo/model/controller.h"

namespace batchplane::slo {

// The same controller; its first step also gives inputs the weight back that the pipeline wants,
// and ends paces. As it is where no task of the model schedules its queues.
std::unique_ptr<Controller> without_weights(std::unique_ptr<Controller> controller,
                                            const Model& model);

}  // namespace batchplane::slo
