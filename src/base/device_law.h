// SPDX-License-Identifier: BSD-3-Clause
// device_law.h - what a job costs a device.
#pragma once

#include <cstdint>

namespace batchplane {

// batch_ns + pkt_ns * packets + byte_ns * bytes (T0, T1, T2 of the papers).
struct DeviceLaw {
  double batch_ns = 0;
  double pkt_ns = 0;
  double byte_ns = 0;
  [[nodiscard]] double job_ns(uint32_t n_pkts, uint64_t n_bytes) const {
    return batch_ns + pkt_ns * n_pkts + byte_ns * static_cast<double>(n_bytes);
  }
};

}  // namespace batchplane
