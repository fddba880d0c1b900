// SPDX-License-Identifier: BSD-3-Clause
// batch_law.h - the time a device takes for a batch.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace batchplane {

// A batch of n packets of l bytes takes batch_ns + length_ns l + (pkt_ns + byte_ns l) n. The papers' usual
// law has T0, T1, T2. length_ns is for devices that process packets in parallel but the bytes of a packet one
// after another: the batch then takes as long as one packet.
struct BatchLaw {
  double batch_ns = 0;
  double pkt_ns = 0;
  double byte_ns = 0;
  double length_ns = 0;

  bool operator==(const BatchLaw&) const = default;
  [[nodiscard]] double time_ns(double n_pkts, double pkt_bytes) const {
    return batch_ns + length_ns * pkt_bytes + (pkt_ns + byte_ns * pkt_bytes) * n_pkts;
  }
  [[nodiscard]] BatchLaw times(double factor) const {
    return {batch_ns * factor, pkt_ns * factor, byte_ns * factor, length_ns * factor};
  }
};

// Keys in files and pipelines; each value is between 0 and kMostLawNs.
inline constexpr double kMostLawNs = 1e9;
inline constexpr std::array<std::pair<std::string_view, double BatchLaw::*>, 4> kLawKeys{
    {{"batch_ns", &BatchLaw::batch_ns},
     {"pkt_ns", &BatchLaw::pkt_ns},
     {"byte_ns", &BatchLaw::byte_ns},
     {"length_ns", &BatchLaw::length_ns}}};
// The part with this key; nullptr if there is none.
[[nodiscard]] constexpr double BatchLaw::*law_part(std::string_view key) {
  for (const auto& [name, part] : kLawKeys) {
    if (name == key) return part;
  }
  return nullptr;
}
inline constexpr const char* kLawKeyNames = "batch_ns, pkt_ns, byte_ns or length_ns";

}  // namespace batchplane
