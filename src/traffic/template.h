// SPDX-License-Identifier: BSD-3-Clause
// template.h - ready-made frames, one per flow and size, and the order in which to use them.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "core/packet/packet.h"
#include "exec/turns.h"
#include "traffic/flow_spec.h"

namespace batchplane::traffic {

// The bytes of one packet of `flow` that has `wire_bytes` on the wire; without the checksum.
std::vector<uint8_t> build_frame(const FlowSpec& flow, uint32_t wire_bytes);

using exec::Order;
[[nodiscard]] Order parse_order(const std::string& name);

// Frames are read, and packet buffers written, up to the next multiple of this (exact to the byte on heap
// memory, so that a sanitizer sees the true end).
inline constexpr uint32_t kCopyBytes = BATCHPLANE_DPDK ? 32 : 1;

inline void copy32(void* to, const void* from) {
  _mm256_storeu_si256(static_cast<__m256i*>(to),
                      _mm256_loadu_si256(static_cast<const __m256i*>(from)));
}

inline void copy_frame(uint8_t* to, const uint8_t* from, uint32_t len_bytes) {
  if constexpr (kCopyBytes == 1) {
    std::memcpy(to, from, len_bytes);
  } else {
    // Explicit vectors: for plain x86-64-v3 the compiler would split each copy in two.
    copy32(to, from);
    copy32(to + 32, from + 32);
    for (uint32_t at = 64; at < len_bytes; at += 32) copy32(to + at, from + at);
  }
}

// Start of a packet's data after reset(). With mbufs this does not read the packet, whose line another core
// may hold.
inline uint8_t* fresh_data(Packet& pkt) {
#if BATCHPLANE_DPDK
  return reinterpret_cast<uint8_t*>(&pkt) + sizeof(rte_mbuf) + kHeadroomBytes;
#else
  return pkt.data() - pkt.headroom_bytes() + kHeadroomBytes;
#endif
}

// Owner of each_next(): one thread. The frames themselves never change.
class TemplateSet {
 public:
  struct Frame {
    const uint8_t* bytes;  // 64-byte aligned, readable up to the next multiple of 64
    uint32_t len_bytes;
    uint32_t flow;
  };

  // Throws ConfigError when the frames would need more than kMaxArenaBytes.
  TemplateSet(const std::vector<FlowSpec>& flows, Order order, uint64_t seed);

  // use(i, frame) for each of the next n frames.
  template <class Use>
  void each_next(uint32_t n, Use&& use) {
    const Frame* const frames = frames_.data();
    turns_.each_next(n, [&](uint32_t i, uint32_t frame) { use(i, frames[frame]); });
  }
  // Sets new weights by flow, keeping order and sizes; allocates.
  void set_weights(const std::vector<double>& flow_weights);

  [[nodiscard]] const std::vector<Frame>& frames() const { return frames_; }
  [[nodiscard]] uint32_t max_len_bytes() const { return max_len_bytes_; }
  [[nodiscard]] double mean_len_bytes() const;

  static constexpr uint64_t kMaxArenaBytes = 512ULL << 20;

 private:
  struct FreeArena {
    void operator()(uint8_t* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };

  exec::Turns turns_;
  std::unique_ptr<uint8_t[], FreeArena> arena_;
  std::vector<Frame> frames_;
  std::vector<double> size_share_;  // of each frame within its flow
  std::vector<double> weights_;     // of each frame
  uint32_t max_len_bytes_ = 0;
};

}  // namespace batchplane::traffic
