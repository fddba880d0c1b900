// SPDX-License-Identifier: BSD-3-Clause
#include "offload/cuda/power_meter.h"

#include <dlfcn.h>

#include <cstdint>

namespace batchplane::offload::cu {
namespace {

using MeterId = struct MeterTag*;

// Names and numbers are those of the library's interface.
struct Meters {
  int32_t (*init)() = nullptr;
  int32_t (*by_bus)(const char* bus, MeterId* meter) = nullptr;
  int32_t (*power_mw)(MeterId, uint32_t* mw) = nullptr;
};

Meters load_meters() {
  Meters meters;
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return meters;
  const auto take = [&](auto& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
    return to != nullptr;
  };
  const bool is_whole = take(meters.init, "nvmlInit_v2") &&
                        take(meters.by_bus, "nvmlDeviceGetHandleByPciBusId_v2") &&
                        take(meters.power_mw, "nvmlDeviceGetPowerUsage");
  if (!is_whole || meters.init() != 0) return {};
  return meters;
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
