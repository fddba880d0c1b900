// SPDX-License-Identifier: BSD-3-Clause
// pcap_writer.h - writes capture files with nanosecond stamps; pcapng or pcap, by the file's
// ending.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "base/spsc_ring.h"
#include "core/packet/packet.h"

namespace batchplane::ports {

// Owner: one thread. Errors while writing are counted, not thrown: a full disk must not stop
// traffic.
class PcapFile {
 public:
  // Throws ConfigError when the file cannot be made.
  PcapFile(const std::string& path, const std::string& where);
  ~PcapFile();
  PcapFile(const PcapFile&) = delete;
  PcapFile& operator=(const PcapFile&) = delete;

  // at_ns: since 1970. False when the packet could not be written.
  bool write(const uint8_t* data, uint32_t len_bytes, uint64_t at_ns);
  bool flush();

 private:
  bool put(const void* bytes, size_t n);
  void write_header();

  std::FILE* file_ = nullptr;
  bool is_pcapng_;
};

// A file written by a thread of its own, so that the one that offers packets makes no system call.
// Owner of offer(): one thread.
class PcapWriterThread {
 public:
  PcapWriterThread(const std::string& path, uint32_t queue_pkts, const std::string& where);
  // Writes out everything offered before.
  ~PcapWriterThread();

  // Takes the first k packets and returns k. They are freed once written.
  uint32_t offer(Packet** pkts, uint32_t n) noexcept;

  [[nodiscard]] uint64_t written_pkts() const {
    return written_pkts_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t failed_pkts() const {
    return failed_pkts_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] uint32_t capacity_pkts() const { return ring_.capacity(); }

 private:
  struct Slot {
    Packet* pkt;
    uint64_t cycles;  // when it was offered
  };
  void run();
  uint32_t write_some();

  PcapFile file_;
  SpscRing<Slot> ring_;
  uint64_t base_cycles_;
  uint64_t base_wall_ns_;
  std::atomic<uint64_t> written_pkts_{0};
  std::atomic<uint64_t> failed_pkts_{0};
  std::atomic<bool> must_stop_{false};
  std::thread thread_;
};

}  // namespace batchplane::ports
