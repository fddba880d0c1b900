// SPDX-License-Identifier: BSD-3-Clause
// byte_ring.h - a bounded queue of byte records between two threads; a push to a full queue fails, neither
// side ever waits.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>

namespace batchplane {

// One thread pushes, one pops. Records start at multiples of 8 bytes and may wrap around the end.
class ByteRing {
 public:
  struct Record {
    uint64_t time_ns = 0;
    uint32_t stored_bytes = 0;
    uint32_t original_bytes = 0;
  };

  // Room for at least size_bytes, headers included.
  explicit ByteRing(uint64_t size_bytes)
      : size_(std::bit_ceil(std::max<uint64_t>(size_bytes, 64))),
        bytes_(std::make_unique<uint8_t[]>(size_)) {}

  // Producer. Returns false, storing nothing, when there is no room.
  bool push(const Record& record, const uint8_t* data) noexcept {
    const uint64_t needed = space_of(record);
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (head + needed - seen_tail_ > size_) {
      seen_tail_ = tail_.load(std::memory_order_acquire);
      if (head + needed - seen_tail_ > size_) return false;
    }
    copy_in(head, &record, sizeof record);
    copy_in(head + sizeof record, data, record.stored_bytes);
    head_.store(head + needed, std::memory_order_release);
    return true;
  }

  // Consumer. Returns false when empty; otherwise pops the oldest record and copies its bytes to `data`,
  // which has room for max_bytes. No stored record may be longer than that.
  bool pop(Record& record, uint8_t* data, uint32_t max_bytes) noexcept {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == head_.load(std::memory_order_acquire)) return false;
    copy_out(tail, &record, sizeof record);
    copy_out(tail + sizeof record, data, std::min(record.stored_bytes, max_bytes));
    tail_.store(tail + space_of(record), std::memory_order_release);
    return true;
  }

 private:
  static uint64_t space_of(const Record& record) {
    return sizeof record + ((static_cast<uint64_t>(record.stored_bytes) + 7) & ~7ULL);
  }
  void copy_in(uint64_t at, const void* from, uint64_t n) noexcept {
    if (n == 0) return;  // `from` may be null then, which memcpy does not allow
    at &= size_ - 1;
    const uint64_t first = std::min(n, size_ - at);
    std::memcpy(bytes_.get() + at, from, first);
    std::memcpy(bytes_.get(), static_cast<const uint8_t*>(from) + first, n - first);
  }
  void copy_out(uint64_t at, void* to, uint64_t n) const noexcept {
    at &= size_ - 1;
    const uint64_t first = std::min(n, size_ - at);
    std::memcpy(to, bytes_.get() + at, first);
    std::memcpy(static_cast<uint8_t*>(to) + first, bytes_.get(), n - first);
  }

  const uint64_t size_;
  const std::unique_ptr<uint8_t[]> bytes_;
  alignas(64) std::atomic<uint64_t> head_{0};  // producer
  uint64_t seen_tail_ = 0;
  alignas(64) std::atomic<uint64_t> tail_{0};  // consumer
};

}  // namespace batchplane
