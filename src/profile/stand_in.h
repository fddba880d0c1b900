// SPDX-License-Identifier: BSD-3-Clause
// stand_in.h - plain packets for what no traffic of the pipeline reaches: inputs from devices, and
// modules behind rare gates.
#pragma once

#include <string>
#include <vector>

#include "profile/stage.h"

namespace batchplane::profile {

// UDP from hosts beside the input's interface, when it has one, to hosts beyond the others.
[[nodiscard]] std::vector<PacketImage> stand_in_for_input(const Graph& graph,
                                                          const std::string& name);
// UDP over the IP version that the module's kind is for.
[[nodiscard]] std::vector<PacketImage> stand_in_pkts(const Instance& instance);

}  // namespace batchplane::profile
