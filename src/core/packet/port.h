// SPDX-License-Identifier: BSD-3-Clause
// port.h - where packets enter and leave the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/net.h"
#include "base/value.h"
#include "core/packet/packet.h"
#include "exec/demand.h"

namespace batchplane {

struct PortStats {
  uint64_t rx_pkts = 0;
  uint64_t rx_bytes = 0;
  uint64_t tx_pkts = 0;
  uint64_t tx_bytes = 0;
  uint64_t rx_missed_pkts = 0;  // the device had them, we were too slow
  uint64_t rx_refused_pkts =
      0;  // came in, but could not be taken (too long, no packet in the pool)
  uint64_t tx_refused_pkts =
      0;  // the device did not take them (they were dropped and counted by the module)
};

// rx_burst: one polling thread; tx_burst: one sending thread (they may differ). Neither blocks.
class Port {
 public:
  virtual ~Port() = default;

  // Control thread, once, before the first burst: gets the device going with packets of `pool`,
  // whose data_bytes() is at least max_frame_bytes(). Throws ConfigError.
  virtual void start(PacketPool& pool) { (void)pool; }
  [[nodiscard]] virtual uint32_t max_frame_bytes() const { return 2048; }

  // Up to max packets, each one contiguous segment, metadata fully written: entry_ns (the RX burst
  // at now_ns, ring enqueue, or due time), in_interface = kNoInterface, rest 0; VLAN tags restored.
  virtual uint32_t rx_burst(Packet** pkts, uint32_t max, uint64_t now_ns) noexcept = 0;
  // Takes the first k of n packets and returns k; the caller still owns the rest.
  virtual uint32_t tx_burst(Packet** pkts, uint32_t n) noexcept = 0;

  // Devices that may leave taken frames lying when their kernel side is busy: push() moves them on.
  // The sending thread calls it about every millisecond; does nothing when nothing was sent since.
  [[nodiscard]] virtual bool wants_push() const { return false; }
  virtual void push() noexcept {}

  [[nodiscard]] virtual PortStats stats() const = 0;  // any thread
  // What waits to be polled, and how full that was found. The polling thread, between two polls.
  [[nodiscard]] virtual exec::RingCounts ring_counts() const noexcept { return {}; }
  virtual void begin_fill_period() noexcept {}  // the highest fill is told anew from here on
  // What is due, and waits for room in front of the port. Any thread.
  [[nodiscard]] virtual uint64_t backlog_pkts() const { return 0; }
  [[nodiscard]] virtual net::Mac mac() const { return {}; }
  [[nodiscard]] virtual uint32_t mtu_bytes() const { return 1500; }
  [[nodiscard]] virtual bool is_up() const { return true; }  // control thread
  // The longest IP packet that it sends now. Any thread; may change at any time.
  [[nodiscard]] uint32_t tx_mtu_bytes() const {
    return tx_mtu_bytes_.load(std::memory_order_relaxed);
  }
  // True when rx_burst will never return anything again (replay that ran once).
  [[nodiscard]] virtual bool is_exhausted() const { return false; }
  // Packets that it holds (rings): for the balance in = out + drops + held.
  [[nodiscard]] virtual uint64_t held_pkts() const { return 0; }
  // The most it can hold (rings, descriptors), for the size of the pool.
  [[nodiscard]] virtual uint64_t max_held_pkts() const { return 0; }
  [[nodiscard]] virtual Value show() const { return Dict{}; }  // kind-specific facts
  virtual Value command(const std::string& verb, const Value& args);

 protected:
  // 0: not known, so as it was.
  void set_tx_mtu_bytes(uint32_t mtu_bytes) {
    if (mtu_bytes != 0) tx_mtu_bytes_.store(mtu_bytes, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint32_t> tx_mtu_bytes_{~0U};
};

}  // namespace batchplane
