// SPDX-License-Identifier: BSD-3-Clause
// dpdk_port.h - any DPDK device as a port: one queue per direction, whole and contiguous frames.
#pragma once

#include <string>

#include "core/module/args.h"
#include "ports/dpdk_device.h"
#include "ports/port_counters.h"

namespace batchplane::ports {

inline constexpr uint32_t kFrameOverheadBytes = 14 + 2 * 4 + 4;  // Ethernet, two tags, checksum

class DpdkPort final : public Port {
 public:
  // Attaches and configures the device; throws ConfigError.
  DpdkPort(const DeviceArgs& device, const Args& args);
  ~DpdkPort() override;

  void start(PacketPool& pool) override;
  uint32_t rx_burst(Packet** pkts, uint32_t max, uint64_t now_ns) noexcept override;
  uint32_t tx_burst(Packet** pkts, uint32_t n) noexcept override;

  [[nodiscard]] bool wants_push() const override { return device_.driver == "net_af_packet"; }
  void push() noexcept override;

  [[nodiscard]] PortStats stats() const override;
  [[nodiscard]] exec::RingCounts ring_counts() const noexcept override;
  void begin_fill_period() noexcept override { fill_.begin_period(); }
  [[nodiscard]] net::Mac mac() const override { return mac_; }
  [[nodiscard]] uint32_t mtu_bytes() const override { return mtu_bytes_; }
  [[nodiscard]] uint32_t max_frame_bytes() const override {
    return std::max(2048U, mtu_bytes_ + kFrameOverheadBytes);
  }
  [[nodiscard]] bool is_up() const override;
  [[nodiscard]] uint64_t max_held_pkts() const override { return rx_slots_ + tx_slots_; }
  [[nodiscard]] Value show() const override;

 private:
  void configure(uint32_t wanted_mtu_bytes);
  [[nodiscard]] uint32_t waiting_pkts() const noexcept;
  [[noreturn]] void fail(const std::string& what, int status, const std::string& fix) const;
  // False if the interface was removed, or was recreated under the same name.
  [[nodiscard]] bool is_there() const;

  const DeviceArgs device_;
  const std::string where_;
  const bool is_promiscuous_;
  uint16_t rx_slots_;
  uint16_t tx_slots_;
  const uint16_t port_;
  uint32_t iface_index_ = 0;
  net::Mac mac_{};
  uint32_t mtu_bytes_ = 1500;
  std::string driver_;
  uint64_t last_poll_ns_ = 0;
  RingFill fill_;          // of the receive queue, at each poll
  bool has_sent_ = false;  // since the last push
  Counter rx_bursts_;
  Counter rx_wait_ns_;
  PortCounters counters_;
};

}  // namespace batchplane::ports
