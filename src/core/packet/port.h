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
  uint64_t rx_missed_pkts = 0;   // packets that the device dropped because we polled too slowly
  uint64_t rx_refused_pkts = 0;  // received but not accepted (too long, or the pool was empty)
  uint64_t tx_refused_pkts = 0;  // not accepted by the device (dropped and counted by the module)
};

// rx_burst: one polling thread; tx_burst: one sending thread (they may differ). Neither blocks.
class Port {
 public:
  virtual ~Port() = default;

  // Control thread, once, before the first burst: starts the device with packets of `pool`, whose
  // data_bytes() is at least max_frame_bytes(). Throws ConfigError.
  virtual void start(PacketPool& pool) { (void)pool; }
  [[nodiscard]] virtual uint32_t max_frame_bytes() const { return 2048; }

  // Up to max packets, each one contiguous segment with complete metadata: entry_ns (now_ns of the RX burst,
  // ring enqueue, or due time), in_interface = kNoInterface, all else 0; VLAN tags restored.
  virtual uint32_t rx_burst(Packet** pkts, uint32_t max, uint64_t now_ns) noexcept = 0;
  // Takes the first k of n packets and returns k; the caller still owns the rest.
  virtual uint32_t tx_burst(Packet** pkts, uint32_t n) noexcept = 0;

  // Some devices may leave sent frames lying while their kernel side is busy: push() moves them on. The
  // sending thread calls it about every millisecond; it does nothing if nothing was sent since.
  [[nodiscard]] virtual bool wants_push() const { return false; }
  virtual void push() noexcept {}

  [[nodiscard]] virtual PortStats stats() const = 0;  // any thread
  // Waiting packets and the ring's fill levels. Polling thread, between two polls.
  [[nodiscard]] virtual exec::RingCounts ring_counts() const noexcept { return {}; }
  virtual void begin_fill_period() noexcept {}  // the maximum fill restarts here
  // Packets that are due but wait for room in front of the port. Any thread.
  [[nodiscard]] virtual uint64_t backlog_pkts() const { return 0; }
  [[nodiscard]] virtual net::Mac mac() const { return {}; }
  [[nodiscard]] virtual uint32_t mtu_bytes() const { return 1500; }
  [[nodiscard]] virtual bool is_up() const { return true; }  // control thread
  // The longest IP packet that it can send now. Any thread; may change at any time.
  [[nodiscard]] uint32_t tx_mtu_bytes() const {
    return tx_mtu_bytes_.load(std::memory_order_relaxed);
  }
  // True when rx_burst will never again return a packet (a replay that has finished).
  [[nodiscard]] virtual bool is_exhausted() const { return false; }
  // Packets held (in rings), for the balance in = out + drops + held.
  [[nodiscard]] virtual uint64_t held_pkts() const { return 0; }
  // Maximum number of packets held (rings, descriptors), to size the pool.
  [[nodiscard]] virtual uint64_t max_held_pkts() const { return 0; }
  [[nodiscard]] virtual Value show() const { return Dict{}; }  // kind-specific facts
  // True for ports that open nothing outside this process. Known once the port is made.
  [[nodiscard]] bool is_memory() const { return is_memory_; }
  void set_memory(bool is_memory) { is_memory_ = is_memory; }
  virtual Value command(const std::string& verb, const Value& args);

 protected:
  // 0: unknown, leaves it unchanged.
  void set_tx_mtu_bytes(uint32_t mtu_bytes) {
    if (mtu_bytes != 0) tx_mtu_bytes_.store(mtu_bytes, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint32_t> tx_mtu_bytes_{~0U};
  bool is_memory_ = false;
};

}  // namespace batchplane
