// SPDX-License-Identifier: BSD-3-Clause
// stand_in.h - plain packets for modules that the pipeline's traffic does not reach: inputs from
// devices, and modules behind rare gates.
#pragma once

#include <string>
#include <vector>

#include "profile/stage.h"

namespace batchplane::profile {

// UDP from hosts on the input interface's subnet, if it has one, to hosts behind the other
// interfaces.
[[nodiscard]] std::vector<PacketImage> stand_in_for_input(const Graph& graph,
                                                          const std::string& name);
// UDP over the IP version that the module's kind handles.
[[nodiscard]] std::vector<PacketImage> stand_in_pkts(const Instance& instance);

}  // namespace batchplane::profile
