// SPDX-License-Identifier: BSD-3-Clause
#include "core/packet/packet_pool.h"

#ifndef __has_feature
#define __has_feature(x) 0  // clang has it, g++ 12 does not
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(addr, size) ((void)(addr), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(addr, size) ((void)(addr), (void)(size))
#endif

namespace batchplane {
namespace {

constexpr uint32_t kLineBytes = 64;

// Of one packet in the pool's memory.
size_t stride_bytes(uint32_t data_bytes) {
  return (kHeadroomBytes + data_bytes + kLineBytes - 1) / kLineBytes * size_t{kLineBytes};
}

}  // namespace

void Packet::place(uint32_t data_off, uint32_t len) {
  data_off_ = data_off;
  len_ = len;
  ASAN_POISON_MEMORY_REGION(buffer_, buffer_bytes_);
  ASAN_UNPOISON_MEMORY_REGION(buffer_ + data_off_, len_);
}

PacketPool::PacketPool(const std::string& /*name*/, uint32_t n_pkts, uint32_t data_bytes)
    : n_pkts_(n_pkts),
      data_bytes_(data_bytes),
      packets_(n_pkts),
      // Not written until packets are: most of a test's pool never is.
      buffers_(std::make_unique_for_overwrite<uint8_t[]>(n_pkts * stride_bytes(data_bytes))) {
  ASAN_POISON_MEMORY_REGION(buffers_.get(), n_pkts * stride_bytes(data_bytes));
  free_.reserve(n_pkts);
  for (uint32_t i = 0; i < n_pkts; ++i) {
    Packet& pkt = packets_[i];
    pkt.buffer_ = buffers_.get() + i * stride_bytes(data_bytes);
    pkt.buffer_bytes_ = kHeadroomBytes + data_bytes;
    pkt.pool_ = this;
    free_.push_back(&pkt);
  }
}

PacketPool::~PacketPool() {
  ASAN_UNPOISON_MEMORY_REGION(buffers_.get(), n_pkts_ * stride_bytes(data_bytes_));
}

std::vector<std::span<uint8_t>> PacketPool::memory() {
  return {{buffers_.get(), n_pkts_ * stride_bytes(data_bytes_)}};
}

bool PacketPool::alloc_bulk(Packet** pkts, uint32_t n) noexcept {
  const std::lock_guard lock(mutex_);
  if (free_.size() < n) return false;
  for (uint32_t i = 0; i < n; ++i) {
    pkts[i] = free_.back();
    free_.pop_back();
  }
  return true;
}

void PacketPool::give_back(Packet** pkts, uint32_t n) noexcept {
  for (uint32_t i = 0; i < n; ++i)
    ASAN_POISON_MEMORY_REGION(pkts[i]->buffer_, pkts[i]->buffer_bytes_);
  const std::lock_guard lock(mutex_);
  free_.insert(free_.end(), pkts, pkts + n);
}

void PacketPool::prefetch_next(uint32_t /*n*/) noexcept {}

void PacketPool::free_bulk(Packet** pkts, uint32_t n) noexcept {
  uint32_t start = 0;
  while (start < n) {
    PacketPool* pool = pkts[start]->pool_;
    uint32_t end = start + 1;
    while (end < n && pkts[end]->pool_ == pool) ++end;
    pool->give_back(pkts + start, end - start);
    start = end;
  }
}

uint32_t PacketPool::available_pkts() const { return static_cast<uint32_t>(free_.size()); }

}  // namespace batchplane
