// SPDX-License-Identifier: BSD-3-Clause
// egress_book.h - the flows of an egress scheduler as users want them, and how changes of them reach the
// worker that schedules.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/spsc_ring.h"
#include "modules/egress/egress_flows.h"
#include "modules/egress/egress_scheduler.h"

namespace batchplane {

class EgressBook {
 public:
  EgressBook(const Args& args, uint32_t max_flows);

  // Control thread. All of the items or none; throws ConfigError.
  void add(const List& items) { edit(items, false); }
  void replace(const List& items) { edit(items, true); }
  void remove(const List& items);
  void set_rate_bps(uint64_t rate_bps);
  [[nodiscard]] const EgressFlows& flows() const { return flows_; }
  [[nodiscard]] List list() const;

  // Any worker: flow 0 for numbers that no flow has.
  [[nodiscard]] uint32_t known(uint32_t flow) const noexcept {
    return flow < is_known_.size() && is_known_[flow].load(std::memory_order_relaxed) ? flow : 0;
  }

  // The worker that schedules, between two rounds.
  void carry_out(EgressScheduler& scheduler) noexcept;
  // A scheduler that knows the flows of `old` goes on with those of this book.
  void take_over(EgressScheduler& scheduler, const EgressBook& old) noexcept;
  void configure_all(EgressScheduler& scheduler) const;

 private:
  struct Edit {
    enum class Kind : uint8_t { kConfigure, kRemove, kRate } kind = Kind::kConfigure;
    uint32_t flow = 0;
    egress::FlowParams params;
    uint64_t rate_bps = 0;
  };
  using Item = std::pair<uint32_t, egress::FlowParams>;

  void edit(const List& items, bool must_exist);
  [[nodiscard]] std::vector<Item> parse(const List& items, const char* verb) const;
  void refuse_too_many(size_t n_edits);
  void order(const Edit& edit) { edits_.enqueue(&edit, 1); }
  void leave(uint32_t flow) noexcept;

  EgressFlows flows_;
  const egress::FlowParams otherwise_;
  std::vector<std::atomic<bool>> is_known_;  // by flow
  SpscRing<Edit> edits_;
  // Removed flows, until their queues are empty. Worker.
  std::vector<uint32_t> leaving_;
  std::vector<bool> is_leaving_;  // by flow
};

}  // namespace batchplane
