// SPDX-License-Identifier: BSD-3-Clause
#include "offload/cuda/power_meter.h"

#include <cstdint>

#include "base/error.h"
#include "base/shared_library.h"

namespace batchplane::offload::cu {
namespace {

using MeterId = struct MeterTag*;

// Names and numbers are those of the library's interface.
struct Meters {
  int32_t (*init)() = nullptr;
  int32_t (*by_bus)(const char* bus, MeterId* meter) = nullptr;
  int32_t (*power_mw)(MeterId, uint32_t* mw) = nullptr;
};

// Without the library there are no measured watts.
Meters load_meters() {
  try {
    const SharedLibrary library("libnvidia-ml.so.1", "", "");
    Meters meters;
    library.find(meters.init, "nvmlInit_v2");
    library.find(meters.by_bus, "nvmlDeviceGetHandleByPciBusId_v2");
    library.find(meters.power_mw, "nvmlDeviceGetPowerUsage");
    if (meters.init() == 0) return meters;
  } catch (const ConfigError&) {
  }
  return {};
}

}  // namespace

std::optional<double> watts_of(const std::string& bus) {
  static const Meters meters = load_meters();
  MeterId meter = nullptr;
  uint32_t mw = 0;
  if (meters.power_mw == nullptr || meters.by_bus(bus.c_str(), &meter) != 0 ||
      meters.power_mw(meter, &mw) != 0)
    return std::nullopt;
  return mw / 1000.0;
}

}  // namespace batchplane::offload::cu
