// SPDX-License-Identifier: BSD-3-Clause
// snapshot_cache.cc - decides when a new snapshot has to be taken.
#include "app/runtime/snapshot_cache.h"

#include <algorithm>

namespace batchplane::app {

std::shared_ptr<const Snapshot> SnapshotCache::get(uint64_t now_ns, bool with_fine,
                                                   const Take& take) {
  const bool needs_fine = with_fine && (!has_fine_ || now_ns - fine_taken_ns_ >= fine_fresh_ns_);
  if (latest_ == nullptr || now_ns - taken_ns_ >= fresh_ns_ || needs_fine) {
    auto taken = std::make_shared<Snapshot>(take(needs_fine));
    taken_ns_ = now_ns;
    note_worst(now_ns, *taken);
    if (needs_fine) {
      has_fine_ = true;
      fine_taken_ns_ = now_ns;
      fine_.clear();
      for (const FlowSnapshot& flow : taken->flows) fine_.push_back(flow.fine_buckets);
    }
    latest_ = std::move(taken);
  }
  if (with_fine && !latest_->flows.empty() && latest_->flows.front().fine_buckets.empty()) {
    auto filled = std::make_shared<Snapshot>(*latest_);
    for (size_t f = 0; f < filled->flows.size() && f < fine_.size(); ++f) {
      filled->flows[f].fine_buckets = fine_[f];
    }
    latest_ = std::move(filled);
  }
  return latest_;
}

void SnapshotCache::note_worst(uint64_t now_ns, const Snapshot& snapshot) {
  constexpr uint64_t kWindowNs = 1'000'000'000;
  if (now_ns - window_ns_ >= kWindowNs) {
    worst_before_ = worst_now_;
    worst_now_ = 0;
    window_ns_ = now_ns;
  }
  for (const WorkerSnapshot& worker : snapshot.workers) {
    worst_now_ = std::max(worst_now_, worker.worst_firings_per_run);
  }
}

uint32_t SnapshotCache::worst_firings_per_run() const {
  return std::max(worst_now_, worst_before_);
}

}  // namespace batchplane::app
