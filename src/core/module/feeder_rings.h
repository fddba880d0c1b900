// SPDX-License-Identifier: BSD-3-Clause
// feeder_rings.h - the rings of a queue: one for each feeding worker, so that no ring has two producers.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace batchplane {

// `Ring` is constructed with its capacity in packets.
template <class Ring>
class FeederRings {
 public:
  // Every worker feeds until set_feeders() restricts it.
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

  // Control thread, while workers run: makes rings for workers that will feed. Nobody reads them yet.
  void prepare(const std::vector<uint32_t>& workers) {
    prepared_ = workers;
    for (const uint32_t w : workers) {
      if (!has(w)) rings_[w] = std::make_unique<Ring>(ring_pkts_);
    }
  }
  // These workers feed from now on. Calls `empty` for each previous ring. Nobody else may use either end.
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
  // The ring of a feeding worker. Each end of it belongs to one thread.
  Ring& operator[](uint32_t worker) const { return *rings_[worker]; }
  [[nodiscard]] bool has(uint32_t worker) const {
    return worker < rings_.size() && rings_[worker] != nullptr;
  }
  // Takes rings in turn, so that no producer starves another.
  Ring& next() {
    Ring& ring = *rings_[feeders_[next_]];
    if (++next_ == feeders_.size()) next_ = 0;
    return ring;
  }

  // Takes over the ring of a worker that also fed the older queue, if it has the same capacity. Call while no
  // worker runs.
  bool take_over(FeederRings& old, uint32_t worker) noexcept {
    if (!has(worker) || !old.has(worker) || ring_pkts_ != old.ring_pkts_) return false;
    std::swap(rings_[worker], old.rings_[worker]);
    return true;
  }

 private:
  const uint32_t ring_pkts_;
  std::vector<std::unique_ptr<Ring>> rings_;  // by worker; present for current and earlier feeders
  std::vector<uint32_t> feeders_;             // workers
  std::vector<uint32_t> prepared_;            // likewise
  size_t next_ = 0;                           // position in feeders_
};

}  // namespace batchplane
