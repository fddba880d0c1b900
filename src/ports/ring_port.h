// SPDX-License-Identifier: BSD-3-Clause
// ring_port.h - a port in memory: a generator feeds it through a ring; sent packets are freed, or looped
// back.
#pragma once

#include "ports/port_counters.h"
#include "ports/ring_take.h"

namespace batchplane {

// Producer of ring(): one thread (a generator, or tx_burst when looped). Consumer: the polling
// worker.
class RingPort final : public Port {
 public:
  RingPort(uint32_t size_pkts, bool is_looped, const std::string& name = "ring");
  ~RingPort() override;

  uint32_t rx_burst(Packet** pkts, uint32_t max, uint64_t now_ns) noexcept override;
  uint32_t tx_burst(Packet** pkts, uint32_t n) noexcept override;

  [[nodiscard]] PortStats stats() const override;
  [[nodiscard]] exec::RingCounts ring_counts() const noexcept override {
    return {ring_.size(), ring_.capacity(), ring_.fill()};
  }
  void begin_fill_period() noexcept override { ring_.begin_fill_period(); }
  [[nodiscard]] uint64_t backlog_pkts() const override;
  [[nodiscard]] uint64_t held_pkts() const override { return ring_.size(); }
  [[nodiscard]] uint64_t max_held_pkts() const override { return ring_.capacity(); }
  [[nodiscard]] net::Mac mac() const override { return mac_; }
  [[nodiscard]] Value show() const override;

  // The ring that a generator fills. It must claim the ring first: there can be only one producer.
  [[nodiscard]] BurstRing& ring() { return ring_; }
  // The producer's counts of packets that are not in the ring.
  [[nodiscard]] ProducerCounts& producer_counts() { return producer_counts_; }
  // Throws ConfigError that names the present producer.
  void claim(const std::string& producer);
  void release();

 private:
  BurstRing ring_;
  const bool is_looped_;
  const net::Mac mac_;
  std::string producer_;
  ProducerCounts producer_counts_;
  ports::PortCounters counters_;
};

}  // namespace batchplane
