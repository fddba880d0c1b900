// SPDX-License-Identifier: BSD-3-Clause
// power_meter.h - a GPU's power draw from NVIDIA's management library (NVML), loaded at run time.
#pragma once

#include <optional>
#include <string>

namespace batchplane::offload::cu {

// Reading of the sensor of the GPU at this PCI address: on recent GPUs, the mean of the last second. Empty
// without the library or a sensor. Control thread: a call may take milliseconds.
[[nodiscard]] std::optional<double> watts_of(const std::string& bus);

}  // namespace batchplane::offload::cu
