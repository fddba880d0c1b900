// SPDX-License-Identifier: BSD-3-Clause
// pcap_writer.h - writes capture files with nanosecond time stamps; pcapng or pcap, by file extension.
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

// Owner: one thread. Write errors are counted, not thrown: a full disk must not stop traffic.
class PcapFile {
 public:
  // Throws ConfigError when the file cannot be created.
  PcapFile(const std::string& path, const std::string& where);
  ~PcapFile();
  PcapFile(const PcapFile&) = delete;
  PcapFile& operator=(const PcapFile&) = delete;

  // at_ns: since 1970. False when this or an earlier packet could not be written.
  bool write(const uint8_t* data, uint32_t len_bytes, uint64_t at_ns);
  // Writes the collected packets, all or none: a full disk leaves no partial packet behind.
  bool flush();
  // Packets that could not be written.
  [[nodiscard]] uint64_t lost_pkts() const { return lost_pkts_; }
  // Size of a packet's record in the file.
  [[nodiscard]] int64_t record_bytes(uint32_t len_bytes) const;
  // Reserves disk space, at most `most_bytes` more, and returns how much; kNoLimit when the file system
  // cannot tell. Packets within the reserved space will not be lost.
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
  int64_t whole_bytes_ = 0;     // file size up to the end of the last complete packet
  uint64_t lost_pkts_ = 0;
  bool is_pcapng_;
};

// A capture file written by its own thread, so that the thread that offers packets makes no system call.
// Owner of offer(): one thread.
class PcapWriterThread {
 public:
  PcapWriterThread(const std::string& path, uint32_t queue_pkts, const std::string& where);
  // Writes everything offered before.
  ~PcapWriterThread();

  // Takes the first k packets and returns k; none while the disk is full. Frees them once written.
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
    uint64_t cycles;  // time of the offer
  };
  void run();
  uint32_t write_some();
  void note_written();
  void find_room();

  PcapFile file_;
  SpscRing<Slot> ring_;
  uint64_t base_cycles_;
  uint64_t base_wall_ns_;
  uint64_t taken_pkts_ = 0;  // taken out of the ring
  std::atomic<uint64_t> written_pkts_{0};
  std::atomic<uint64_t> failed_pkts_{0};
  std::atomic<int64_t> room_bytes_{0};   // on the disk, for packets not yet offered
  std::atomic<bool> is_failing_{false};  // the last write failed; retried now and then
  std::atomic<bool> must_stop_{false};
  std::thread thread_;
};

}  // namespace batchplane::ports
