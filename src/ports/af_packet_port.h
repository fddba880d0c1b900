// SPDX-License-Identifier: BSD-3-Clause
// af_packet_port.h - a kernel network interface as a port, through a packet socket with mapped rings.
//
// Used instead of DPDK's af_packet driver, which lets the kernel reassemble IPv4 fragments before they
// arrive, loses the type of a stripped VLAN tag, and counts frames as sent that the kernel has refused for
// the moment.
#pragma once

#include <linux/if_packet.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "core/module/args.h"
#include "ports/link_watch.h"
#include "ports/port_counters.h"
#include "ports/port_events.h"

namespace batchplane::ports {

// One direction of the mapped memory: frames of equal size, each preceded by the kernel's header, whose
// status word says who owns the frame.
struct FrameRing {
  uint8_t* base = nullptr;
  uint32_t frame_bytes = 0;
  uint32_t n_frames = 0;
  uint32_t at = 0;  // the next frame

  [[nodiscard]] tpacket2_hdr* frame(uint32_t i) const {
    return reinterpret_cast<tpacket2_hdr*>(base + static_cast<size_t>(i) * frame_bytes);
  }
  [[nodiscard]] tpacket2_hdr* current() const { return frame(at); }
  void advance() { at = at + 1 == n_frames ? 0 : at + 1; }
};

class AfPacketPort final : public Port {
 public:
  // Opens the socket and its rings; throws ConfigError.
  explicit AfPacketPort(const Args& args);
  ~AfPacketPort() override;

  void start(PacketPool& pool) override;
  uint32_t rx_burst(Packet** pkts, uint32_t max, uint64_t now_ns) noexcept override;
  uint32_t tx_burst(Packet** pkts, uint32_t n) noexcept override;

  [[nodiscard]] PortStats stats() const override;
  [[nodiscard]] exec::RingCounts ring_counts() const noexcept override;
  void begin_fill_period() noexcept override { fill_.begin_period(); }
  [[nodiscard]] net::Mac mac() const override { return mac_; }
  [[nodiscard]] uint32_t mtu_bytes() const override { return mtu_bytes_; }
  [[nodiscard]] uint32_t max_frame_bytes() const override;
  [[nodiscard]] bool is_up() const override;
  [[nodiscard]] Value show() const override;

 private:
  void open_rings(uint32_t rx_slots, uint32_t tx_slots);
  void set_option(int option, const void* value, uint32_t value_bytes, const std::string& what);
  [[noreturn]] void fail(const std::string& what, const std::string& fix) const;
  [[nodiscard]] uint32_t ready_frames(uint32_t max) const noexcept;
  [[nodiscard]] uint32_t waiting_frames() const noexcept;
  bool receive(const tpacket2_hdr* frame, Packet& pkt) const noexcept;
  uint32_t fill_slots(Packet** pkts, uint32_t n) noexcept;
  uint32_t let_kernel_send(uint32_t first, uint32_t n) noexcept;
  void bind_to(uint32_t index) const;
  void look_at_mtu() noexcept;
  // After any link change: updates the MTU, and binds to an interface that was recreated.
  void follow();
  void note_state(const char* state);
  // False if the interface was removed, or was recreated under the same name.
  [[nodiscard]] bool is_there() const;

  const std::string interface_;
  const std::string where_;
  const bool is_promiscuous_;
  std::atomic<uint32_t> index_ = 0;
  uint32_t mtu_bytes_ = 0;
  net::Mac mac_{};
  int fd_ = -1;
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  PacketPool* pool_ = nullptr;
  FrameRing rx_;
  RingFill fill_;  // of rx_, at each poll
  alignas(64) FrameRing tx_;
  PortCounters counters_;
  Counter rx_starved_polls_;
  Counter tx_busy_;  // sends that the kernel did not complete
  Counter rebinds_;  // bindings to a recreated interface
  PortEvents events_;
  const char* state_ = "";  // as last reported; owned by the link watch
  // Reading the kernel's counter clears it, and several threads read it.
  mutable std::atomic<uint64_t> rx_missed_pkts_ = 0;
  std::shared_ptr<LinkWatch> watch_;
};

}  // namespace batchplane::ports
