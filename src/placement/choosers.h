// SPDX-License-Identifier: BSD-3-Clause
// choosers.h - who may decide in a plant: the placer, what it is compared with, and one who knows everything.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "placement/plant.h"

namespace batchplane::placement {

// placer          what a daemon runs: laws as profiled, rates as seen
// oracle          the true laws and rates of each moment, and time to think
// all             all devices always, by speed
// alone:DEVICE    everything there
// static          the best plan for the highest rates, never changed
// nba             NBA's balancer: each 0.2 s, 5 % of an application's packets between the first two devices,
//                 back when throughput falls (EuroSys'15)
// `profiled`: what all but the oracle know of the laws. Throws std::invalid_argument for other names.
[[nodiscard]] std::unique_ptr<Chooser> make_chooser(const std::string& name, const PlantSpec& spec,
                                                    const Problem& profiled,
                                                    const PlacerSettings& settings);

}  // namespace batchplane::placement
