// SPDX-License-Identifier: BSD-3-Clause
// power_meter.h - what a GPU draws, by NVIDIA's management library, found at run time.
#pragma once

#include <optional>
#include <string>

namespace batchplane::offload::cu {

// Of the GPU at this place of the PCI bus, as its sensor says: a mean of its last second on recent ones.
// Nothing where there is no library or no sensor. Control thread: it takes up to milliseconds.
[[nodiscard]] std::optional<double> watts_of(const std::string& bus);

}  // namespace batchplane::offload::cu
