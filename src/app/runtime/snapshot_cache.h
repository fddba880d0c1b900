// SPDX-License-Identifier: BSD-3-Clause
// snapshot_cache.h - shares one snapshot among clients that ask at the same time, so that clients do not
// multiply work.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/engine/engine.h"

namespace batchplane::app {

// Serialised by the caller, like the engine.
class SnapshotCache {
 public:
  static constexpr uint64_t kFreshNs = 1'000'000;
  // Fine histograms are large: copying them moves their lines out of the worker's cache and back.
  static constexpr uint64_t kFineFreshNs = 250'000'000;

  explicit SnapshotCache(uint64_t fresh_ns = kFreshNs, uint64_t fine_fresh_ns = kFineFreshNs)
      : fresh_ns_(fresh_ns), fine_fresh_ns_(fine_fresh_ns) {}

  using Take = std::function<Snapshot(bool with_fine)>;

  // A snapshot no older than fresh_ns; its fine histograms, if requested, no older than fine_fresh_ns.
  std::shared_ptr<const Snapshot> get(uint64_t now_ns, bool with_fine, const Take& take);
  // Call after changes: the next get() takes a new snapshot.
  void forget() { latest_ = nullptr, has_fine_ = false; }
  // Over the last one to two seconds.
  [[nodiscard]] uint32_t worst_firings_per_run() const;

 private:
  void note_worst(uint64_t now_ns, const Snapshot& snapshot);

  uint64_t fresh_ns_;
  uint64_t fine_fresh_ns_;
  std::shared_ptr<Snapshot> latest_;
  uint64_t taken_ns_ = 0;
  bool has_fine_ = false;
  uint64_t fine_taken_ns_ = 0;
  std::vector<std::vector<uint64_t>> fine_;  // per flow
  uint64_t window_ns_ = 0;
  uint32_t worst_now_ = 0;
  uint32_t worst_before_ = 0;
};

}  // namespace batchplane::app
