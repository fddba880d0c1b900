// SPDX-License-Identifier: BSD-3-Clause
// tap_writer.h - a thread that takes copies of packets from a ring and writes them to a capture
// file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/byte_ring.h"

namespace batchplane {

struct TapFile {
  std::string path;  // .pcapng selects that format; anything else is pcap with nanoseconds
  uint32_t snaplen_bytes = 0;
  uint64_t ring_bytes = 0;
  uint64_t max_file_bytes = 0;
  int64_t epoch_offset_ns = 0;  // from the worker's clock to Unix time
};

// Creates the file when the first packet arrives. The destructor writes the rest of the ring.
class TapWriter {
 public:
  explicit TapWriter(TapFile file);
  ~TapWriter();
  TapWriter(const TapWriter&) = delete;
  TapWriter& operator=(const TapWriter&) = delete;

  // Owner: one worker at a time. Returns false when the ring is full.
  bool offer(uint64_t time_ns, const uint8_t* data, uint32_t len_bytes) noexcept;

  // Returns when everything offered before has been written. Control thread.
  void flush();
  [[nodiscard]] uint64_t written_pkts() const {
    return written_pkts_.load(std::memory_order_relaxed);
  }
  // Taken from the ring but not written, because the file is full or the disk reported an error.
  [[nodiscard]] uint64_t unwritten_pkts() const {
    return unwritten_pkts_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::string error() const;
  [[nodiscard]] const TapFile& file() const { return file_; }

 private:
  void work();
  void drain();
  void open();
  void write_record(const ByteRing::Record& record);
  void put(const void* data, size_t n_bytes);
  void fail(const std::string& what);
  [[nodiscard]] bool is_pcapng() const { return file_.path.ends_with(".pcapng"); }

  const TapFile file_;
  ByteRing ring_;
  std::vector<uint8_t> bytes_;  // the record being built. Writer
  std::FILE* out_ = nullptr;
  uint64_t file_bytes_ = 0;
  bool is_failed_ = false;
  std::atomic<uint64_t> written_pkts_{0};
  std::atomic<uint64_t> unwritten_pkts_{0};

  mutable std::mutex mutex_;  // never taken by a worker
  std::condition_variable wake_;
  std::condition_variable flushed_;
  uint64_t flushes_wanted_ = 0;
  uint64_t flushes_done_ = 0;
  bool is_stopping_ = false;
  std::string error_;
  std::thread thread_;
};

}  // namespace batchplane
