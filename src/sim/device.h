// SPDX-License-Identifier: BSD-3-Clause
// device.h - a simulated device: it takes what its law says for each job, one job after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "base/value.h"
#include "spec/pipeline_spec.h"

namespace batchplane::sim {

// Owner: one simulation. All stages on all workers that use it share it.
class Device {
 public:
  explicit Device(const DeviceSpec& spec);

  // The thread that runs another stage's jobs. Only threads of this machine work side by side.
  uint32_t attach() { return n_attached_++ % static_cast<uint32_t>(free_ns_.size()); }
  // When a job that is handed over now ends: it begins when those before it on its thread have ended.
  uint64_t submit(uint32_t thread, uint32_t n_pkts, uint64_t takes_ns, uint64_t now_ns);

  // As the engine's devices show themselves.
  [[nodiscard]] Dict show(uint64_t now_ns) const;
  [[nodiscard]] uint64_t busy_ns() const { return busy_ns_; }

 private:
  DeviceSpec spec_;
  std::vector<uint64_t> free_ns_;  // by thread
  uint32_t n_attached_ = 0;
  uint64_t jobs_ = 0;
  uint64_t pkts_ = 0;
  uint64_t busy_ns_ = 0;
};

}  // namespace batchplane::sim
