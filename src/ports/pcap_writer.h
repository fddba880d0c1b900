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
#include <vector>

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

  // at_ns: since 1970. False when it, or one before it, could not be written.
  bool write(const uint8_t* data, uint32_t len_bytes, uint64_t at_ns);
  // Writes what is collected, all of it or nothing: a full disk leaves no half packet behind.
  bool flush();
  // That could not be written.
  [[nodiscard]] uint64_t lost_pkts() const { return lost_pkts_; }
  // What a packet takes in the file.
  [[nodiscard]] int64_t record_bytes(uint32_t len_bytes) const;
  // Sets aside room on the disk, `most_bytes` more at most, and returns how much; kNoLimit where the file
  // system cannot tell. What has room is not lost later.
  int64_t reserve(int64_t most_bytes);
  static constexpr int64_t kNoLimit = int64_t{1} << 60;

 private:
  static constexpr size_t kBlockBytes = 65'536;

  void put(const void* bytes, size_t n);
  void write_header();

  std::FILE* file_ = nullptr;
  std::vector<uint8_t> block_;
  uint64_t block_pkts_ = 0;
  int64_t reserved_bytes_ = 0;  // from the beginning of the file
  int64_t whole_bytes_ = 0;     // of the file, up to the end of its last whole packet
  uint64_t lost_pkts_ = 0;
  bool is_pcapng_;
};

// A file written by a thread of its own, so that the one that offers packets makes no system call.
// Owner of offer(): one thread.
class PcapWriterThread {
 public:
  PcapWriterThread(const std::string& path, uint32_t queue_pkts, const std::string& where);
  // Writes out everything offered before.
  ~PcapWriterThread();

  // Takes the first k packets and returns k; none while the disk is full. They are freed once written.
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
  void note_written();
  void find_room();

  PcapFile file_;
  SpscRing<Slot> ring_;
  uint64_t base_cycles_;
  uint64_t base_wall_ns_;
  uint64_t taken_pkts_ = 0;  // out of the ring
  std::atomic<uint64_t> written_pkts_{0};
  std::atomic<uint64_t> failed_pkts_{0};
  std::atomic<int64_t> room_bytes_{0};   // on the disk, for packets not yet offered
  std::atomic<bool> is_failing_{false};  // the last write did; another is tried now and then
  std::atomic<bool> must_stop_{false};
  std::thread thread_;
};

}  // namespace batchplane::ports
