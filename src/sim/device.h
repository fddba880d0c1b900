// SPDX-License-Identifier: BSD-3-Clause
// device.h - a simulated device: runs jobs one after the other, or some at once, for the time given by their law.
#pragma once

#include <cstdint>
#include <vector>

#include "base/value.h"
#include "spec/pipeline_spec.h"

namespace batchplane::sim {

// Owner: one simulation. Shared by all stages that use it, on all workers.
class Device {
 public:
  explicit Device(const DeviceSpec& spec);

  // Returns the thread for another stage's jobs. Only threads of the host work in parallel.
  uint32_t attach() { return n_attached_++ % static_cast<uint32_t>(free_ns_.size()); }
  [[nodiscard]] uint32_t n_threads() const { return static_cast<uint32_t>(free_ns_.size()); }
  // When a job submitted now ends. It starts once the earlier jobs on its thread leave room: each takes that
  // room for its busy_ns.
  uint64_t submit(uint32_t thread, uint32_t n_pkts, uint64_t takes_ns, uint64_t busy_ns,
                  uint64_t now_ns);

  // In the form that the engine's devices show.
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
