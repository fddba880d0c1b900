// SPDX-License-Identifier: BSD-3-Clause
// controllers.h - creates controllers by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "slo/model/controller.h"

namespace batchplane::slo {

// `text`: one of controller_names(). The model outlives the controller. Throws ConfigError that lists the names.
std::unique_ptr<Controller> make_controller(const std::string& text, const Model& model,
                                            const Settings& settings);
std::vector<std::string> controller_names();

}  // namespace batchplane::slo
