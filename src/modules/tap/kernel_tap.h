// SPDX-License-Identifier: BSD-3-Clause
// kernel_tap.h - a TAP interface of the Linux kernel, served by its own thread: workers only access
// rings.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/net.h"
#include "base/spsc_ring.h"

namespace batchplane {

struct KernelTapConfig {
  std::string name;
  net::Mac mac{};  // the kernel's end
  uint32_t mtu_bytes = 1500;
  bool has_address = false;
  net::Prefix4 address{};  // the kernel's end, host bits kept
};

struct KernelTapStats {
  uint64_t to_kernel_pkts = 0;
  uint64_t refused_pkts = 0;  // the kernel did not accept them
  uint64_t from_kernel_pkts = 0;
  uint64_t ignored_pkts = 0;  // neither IPv4 nor ARP
  uint64_t arp_answers = 0;
};

// Owner: each ring has one worker at its other end. Everything else: control thread.
class KernelTap {
 public:
  static constexpr uint32_t kMaxFrameBytes = 2040;
  struct Frame {
    uint32_t len_bytes;
    uint8_t data[kMaxFrameBytes];
  };

  // Opens the device config.name. If this process has it open already (a new graph is built while
  // the old one runs), returns that one, reconfigured. Throws ConfigError with the remedy.
  static std::shared_ptr<KernelTap> open(const KernelTapConfig& config);
  ~KernelTap();
  KernelTap(const KernelTap&) = delete;
  KernelTap& operator=(const KernelTap&) = delete;

  SpscRing<Frame>& to_kernel() { return to_kernel_; }
  SpscRing<Frame>& from_kernel() { return from_kernel_; }
  // Stands for all hosts beyond the router: the answer to the kernel's ARP requests.
  [[nodiscard]] static net::Mac peer_mac() { return {0x02, 0, 0, 0, 0xfe, 0x00}; }
  [[nodiscard]] KernelTapStats stats() const;

 private:
  explicit KernelTap(const KernelTapConfig& config);
  void configure(const KernelTapConfig& config);
  void serve();
  bool write_some();
  bool read_some();
  bool answer_arp(uint8_t* frame, uint32_t len_bytes);

  int fd_ = -1;
  std::string name_;
  SpscRing<Frame> to_kernel_;
  SpscRing<Frame> from_kernel_;
  std::atomic<bool> is_stopping_{false};
  std::atomic<uint64_t> to_kernel_pkts_{0};
  std::atomic<uint64_t> refused_pkts_{0};
  std::atomic<uint64_t> from_kernel_pkts_{0};
  std::atomic<uint64_t> ignored_pkts_{0};
  std::atomic<uint64_t> arp_answers_{0};
  std::thread thread_;
};

}  // namespace batchplane
