// SPDX-License-Identifier: BSD-3-Clause
// feeder_rings.h - the rings of a queue: one for each worker that puts packets in, so that none has two
// producers.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace batchplane {

// `Ring` is made with the number of packets that it holds.
template <class Ring>
class FeederRings {
 public:
  // Every worker feeds, until set_feeders() says which do.
  FeederRings(uint32_t n_workers, uint32_t ring_pkts) : ring_pkts_(ring_pkts), rings_(n_workers) {
    std::vector<uint32_t> all(n_workers);
    std::iota(all.begin(), all.end(), 0U);
    set_feeders(all);
  }
  void set_feeders(const std::vector<uint32_t>& workers) {
    feeders_ = workers;
    next_ = 0;
    for (auto& ring : rings_) ring.reset();
    for (const uint32_t w : feeders_) rings_[w] = std::make_unique<Ring>(ring_pkts_);
  }

  // Control thread, while all run: rings for workers that are to feed. No reader looks at them yet.
  void prepare(const std::vector<uint32_t>& workers) {
    prepared_ = workers;
    for (const uint32_t w : workers) {
      if (!has(w)) rings_[w] = std::make_unique<Ring>(ring_pkts_);
    }
  }
  // They feed from now on. `empty` gets each ring of before. Nobody else is at either end.
  template <class Empty>
  void switch_over(Empty empty) {
    for (const uint32_t w : feeders_) empty(*rings_[w]);
    std::swap(feeders_, prepared_);
    next_ = 0;
  }

  [[nodiscard]] const std::vector<uint32_t>& feeders() const { return feeders_; }
  [[nodiscard]] uint32_t max_pkts() const {
    return ring_pkts_ * static_cast<uint32_t>(feeders_.size());
  }
  // Of a worker that feeds. Each end of a ring belongs to a thread, whoever else may look at it.
  Ring& operator[](uint32_t worker) const { return *rings_[worker]; }
  [[nodiscard]] bool has(uint32_t worker) const {
    return worker < rings_.size() && rings_[worker] != nullptr;
  }
  // Rings take turns, so that no producer starves another.
  Ring& next() {
    Ring& ring = *rings_[feeders_[next_]];
    if (++next_ == feeders_.size()) next_ = 0;
    return ring;
  }

  // Goes on with the ring of a worker that fed the older queue, too, if it holds as many packets. No worker
  // runs.
  bool take_over(FeederRings& old, uint32_t worker) noexcept {
    if (!has(worker) || !old.has(worker) || ring_pkts_ != old.ring_pkts_) return false;
    std::swap(rings_[worker], old.rings_[worker]);
    return true;
  }

 private:
  const uint32_t ring_pkts_;
  std::vector<std::unique_ptr<Ring>> rings_;  // by worker; of those that feed or did
  std::vector<uint32_t> feeders_;             // workers
  std::vector<uint32_t> prepared_;            // likewise
  size_t next_ = 0;                           // of feeders_
};

}  // namespace batchplane
