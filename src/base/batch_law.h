// SPDX-License-Identifier: BSD-3-Clause
// batch_law.h - the time a device takes for a batch: a line over packets and bytes, or a table of measured
// times with a line that summarises it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace batchplane {

// Measured times over batch sizes and packet lengths.
struct BatchTable {
  std::vector<uint32_t> batch_pkts;  // ascending
  std::vector<uint32_t> pkt_bytes;   // ascending
  // Of a batch that is alone on the device; each size has a row with a time for each length.
  std::vector<double> alone_ns;
  // By which a batch puts off the end of all that come after it. Less than alone_ns on a device that works on
  // several batches at once. Empty: the same as alone_ns.
  std::vector<double> busy_ns;

  bool operator==(const BatchTable&) const = default;
};

// By the line, a batch of n packets of l bytes takes batch_ns + length_ns l + (pkt_ns + byte_ns l) n. The papers'
// usual law has T0, T1, T2. length_ns is for devices that process packets in parallel but the bytes of a packet
// one after another: the batch then takes as long as one packet.
struct BatchLaw {
  double batch_ns = 0;
  double pkt_ns = 0;
  double byte_ns = 0;
  double length_ns = 0;
  std::shared_ptr<const BatchTable> table = nullptr;  // if there is one, it replaces the line

  bool operator==(const BatchLaw& other) const;
  // Between measured sizes and lengths: interpolated. Beyond them: by the nearest slope. Never negative.
  [[nodiscard]] double time_ns(double n_pkts, double pkt_bytes) const {
    return table == nullptr ? line_ns(n_pkts, pkt_bytes)
                            : table_ns(table->alone_ns, n_pkts, pkt_bytes);
  }
  // Time of the device that a batch takes from others; at most time_ns.
  [[nodiscard]] double busy_ns(double n_pkts, double pkt_bytes) const;
  [[nodiscard]] double line_ns(double n_pkts, double pkt_bytes) const {
    return batch_ns + length_ns * pkt_bytes + (pkt_ns + byte_ns * pkt_bytes) * n_pkts;
  }
  [[nodiscard]] BatchLaw times(double factor) const;
  // With this much more for each batch and each packet.
  [[nodiscard]] BatchLaw plus(double more_batch_ns, double more_pkt_ns) const;

 private:
  [[nodiscard]] double table_ns(const std::vector<double>& ns, double n_pkts,
                                double pkt_bytes) const;
};

// Keys of the line in files and pipelines; each value is between 0 and kMostLawNs.
inline constexpr double kMostLawNs = 1e9;
inline constexpr std::array<std::pair<std::string_view, double BatchLaw::*>, 4> kLawKeys{
    {{"batch_ns", &BatchLaw::batch_ns},
     {"pkt_ns", &BatchLaw::pkt_ns},
     {"byte_ns", &BatchLaw::byte_ns},
     {"length_ns", &BatchLaw::length_ns}}};

}  // namespace batchplane
