// SPDX-License-Identifier: BSD-3-Clause
// port_counters.h - a port's own counters: one writer per direction, readable from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "core/packet/port.h"

namespace batchplane::ports {

class Counter {
 public:
  // Owner: one thread. A plain addition without a locked instruction.
  void add(uint64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct PortCounters {
  alignas(64) Counter rx_pkts;
  Counter rx_bytes;
  Counter rx_refused_pkts;
  alignas(64) Counter tx_pkts;
  Counter tx_bytes;
  Counter tx_refused_pkts;

  [[nodiscard]] PortStats stats() const {
    return {.rx_pkts = rx_pkts.get(),
            .rx_bytes = rx_bytes.get(),
            .tx_pkts = tx_pkts.get(),
            .tx_bytes = tx_bytes.get(),
            .rx_refused_pkts = rx_refused_pkts.get(),
            .tx_refused_pkts = tx_refused_pkts.get()};
  }
};

// MAC address of a port without hardware: derived from its name, so that it is the same in every run, and
// marked as locally administered.
inline net::Mac local_mac(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  net::Mac mac{0x02};
  for (uint32_t i = 1; i < 6; ++i) mac[i] = static_cast<uint8_t>(hash >> (8 * i));
  return mac;
}

inline uint64_t sum_len_bytes(Packet* const* pkts, uint32_t n) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < n; ++i) bytes += pkts[i]->len_bytes();
  return bytes;
}

}  // namespace batchplane::ports
