// SPDX-License-Identifier: BSD-3-Clause
// choosers.h - choosers of plans for a plant: the placer, baselines to compare it with, and an
// oracle.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "placement/plant.h"

namespace batchplane::placement {

// placer          as in a daemon: profiled laws, measured rates
// oracle          true laws and rates at each moment, and more search effort
// all             always all devices, by speed
// alone:DEVICE    everything on one device
// static          the best plan for the highest rates, never changed
// nba             NBA's balancer: every 0.2 s moves 5 % of an application's packets between the
// first two
// devices, and back when throughput falls (EuroSys'15)
// `profiled`: the laws known to all but the oracle. Throws std::invalid_argument for other names.
[[nodiscard]] std::unique_ptr<Chooser> make_chooser(const std::string& name, const PlantSpec& spec,
                                                    const Problem& profiled,
                                                    const PlacerSettings& settings);

}  // namespace batchplane::placement
