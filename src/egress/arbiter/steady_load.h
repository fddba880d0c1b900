// SPDX-License-Identifier: BSD-3-Clause
// steady_load.h - a constant load on a scheduler, to measure its costs.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "egress/discipline/discipline.h"

namespace batchplane::egress {

struct LoadShape {
  uint32_t flows = 32;  // with weights from 1 to 64
  bool is_saturated =
      true;  // every flow always has packets; else a few packets are inside at any time,
             // so nearly each one finds its flow idle and leaves it so
  bool is_mixed = false;  // 64 and 1500 bytes in turn; else 64
};

template <Discipline D>
class SteadyLoad {
 public:
  static constexpr uint32_t kBatchPkts = 32;

  explicit SteadyLoad(LoadShape shape)
      : shape_(shape),
        rng_(shape.flows),
        discipline_({shape.flows, shape.flows * kPktsOfFlow + 1024}) {
    for (uint32_t f = 0; f < shape.flows; ++f) {
      discipline_.configure(f, {.weight = 1 + f % 64, .lmax_bytes = 1500});
    }
    const uint32_t inside = shape.is_saturated ? shape.flows * kPktsOfFlow : kComingPkts;
    for (uint32_t k = 0; k < inside; ++k) {
      const uint32_t flow = shape.is_saturated ? k % shape.flows : rng_.below(shape.flows);
      discipline_.enqueue(Descriptor::of(1, next_len_bytes(), flow, 0));
    }
    inside_pkts_ = discipline_.backlog_pkts();
  }

  // Dequeues and enqueues 32 packets, n_batches times.
  uint64_t run(uint32_t n_batches) {
    Descriptor pkts[kBatchPkts];
    for (uint32_t b = 0; b < n_batches; ++b) {
      uint32_t n = 0;
      while (n < kBatchPkts && discipline_.dequeue(pkts[n])) ++n;
      for (uint32_t i = 0; i < n; ++i) {
        const uint32_t flow = shape_.is_saturated ? pkts[i].flow : rng_.below(shape_.flows);
        pkts[i] = Descriptor::of(1, next_len_bytes(), flow, 0);
        discipline_.prefetch(flow);
      }
      for (uint32_t i = 0; i < n; ++i) discipline_.enqueue(pkts[i]);
    }
    return uint64_t{n_batches} * kBatchPkts;
  }
  // Nothing was lost or refused.
  [[nodiscard]] bool is_whole() const { return discipline_.backlog_pkts() == inside_pkts_; }

 private:
  static constexpr uint32_t kPktsOfFlow = 3;
  static constexpr uint32_t kComingPkts = 64;

  uint32_t next_len_bytes() { return shape_.is_mixed && (n_made_++ & 1) != 0 ? 1500 : 64; }

  LoadShape shape_;
  uint32_t n_made_ = 0;
  uint32_t inside_pkts_ = 0;
  Rng rng_;
  D discipline_;
};

}  // namespace batchplane::egress
