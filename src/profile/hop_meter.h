// SPDX-License-Identifier: BSD-3-Clause
// hop_meter.h - what a packet that goes to a worker on another core costs both of them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/engine_costs.h"
#include "base/spsc_ring.h"
#include "core/packet/packet_pool.h"
#include "profile/doubts.h"

namespace batchplane::profile {

// Bursts go from a sender to a taker: both on the caller's core, in turn, and with the sender on
// another core. Owner: one thread, pinned and registered with the packet backend by the caller.
class HopMeter {
 public:
  // `core`: the sender's; -1 = measure nothing.
  HopMeter(PacketPool& pool, int core) : pool_(pool), core_(core) {}

  void pass(double ms);
  [[nodiscard]] HopCosts result(Doubts& doubts) const;

 private:
  using Ring = SpscRing<Packet*>;
  struct Times {
    std::vector<double> send_ns;  // per packet
    std::vector<double> take_ns;
  };

  [[nodiscard]] bool is_possible() const;
  // False where there was no room, or nothing.
  bool send(Ring& ring, std::vector<double>& ns);
  bool take(Ring& ring, std::vector<double>& ns);
  void run_near(uint64_t length_ns);
  void run_far(uint64_t length_ns);

  PacketPool& pool_;
  int core_;
  Times near_;
  Times far_;
};

}  // namespace batchplane::profile
