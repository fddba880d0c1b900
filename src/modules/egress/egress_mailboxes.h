// SPDX-License-Identifier: BSD-3-Clause
// egress_mailboxes.h - how packets come to an egress scheduler: a mailbox for each worker that sends, none
// for the one that schedules.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "egress/arbiter/batch_mailbox.h"
#include "modules/egress/egress_scheduler.h"

namespace batchplane {

class EgressMailboxes {
 public:
  EgressMailboxes(uint32_t n_workers, uint32_t mailbox_pkts)
      : mailbox_pkts_(mailbox_pkts), of_worker_(n_workers), direct_pkts_(n_workers) {
    std::vector<uint32_t> all(n_workers);
    std::iota(all.begin(), all.end(), 0U);
    set_feeders(all);
  }
  void set_feeders(const std::vector<uint32_t>& workers) {
    feeders_ = workers;
    next_ = 0;
    for (auto& mailbox : of_worker_) mailbox.reset();
    for (const uint32_t w : feeders_) {
      of_worker_[w] = std::make_unique<egress::BatchMailbox>(mailbox_pkts_);
    }
  }
  [[nodiscard]] uint32_t capacity_pkts() const {
    return mailbox_pkts_ * static_cast<uint32_t>(feeders_.size());
  }

  // A worker that sends.
  uint32_t put(uint32_t worker, const egress::Descriptor* pkts, uint32_t n) noexcept {
    return of_worker_[worker]->put(pkts, n);
  }
  void note_direct(uint32_t worker, uint64_t n) noexcept { bump(direct_pkts_[worker], n); }
  // Ever put in by this worker, into its mailbox or past it.
  [[nodiscard]] uint64_t put_pkts(uint32_t worker) const {
    return direct_pkts_[worker].load(std::memory_order_acquire) + of_worker_[worker]->put_pkts();
  }
  [[nodiscard]] uint64_t put_pkts() const {
    uint64_t put = 0;
    for (const uint32_t w : feeders_) put += put_pkts(w);
    return put;
  }

  // The worker that schedules. Mailboxes take turns, so that each is read when many are refused.
  void take_all(EgressScheduler& scheduler, EgressRefusals& refusals) noexcept {
    for (size_t k = 0; k < feeders_.size() && refusals.n < EgressRefusals::kMax; ++k) {
      scheduler.take(*of_worker_[feeders_[next_]], refusals);
      if (++next_ == feeders_.size()) next_ = 0;
    }
  }
  bool take_one(egress::Descriptor& pkt) noexcept {
    for (const uint32_t w : feeders_) {
      if (of_worker_[w]->take(&pkt, 1) == 1) return true;
    }
    return false;
  }

  // An apply, while no worker runs: mailboxes of the same worker and size go on as they are. Returns how
  // many packets had been taken from them.
  uint64_t adopt(EgressMailboxes& old) noexcept {
    uint64_t taken_pkts = 0;
    for (const uint32_t w : feeders_) {
      const bool was_there = w < old.of_worker_.size() && old.of_worker_[w] != nullptr;
      if (!was_there || mailbox_pkts_ != old.mailbox_pkts_) continue;
      std::swap(of_worker_[w], old.of_worker_[w]);
      taken_pkts += of_worker_[w]->taken_pkts();
    }
    return taken_pkts;
  }
  // Put in past the mailboxes by an apply.
  void note_moved(uint64_t n) noexcept { note_direct(feeders_.front(), n); }

 private:
  const uint32_t mailbox_pkts_;
  std::vector<std::unique_ptr<egress::BatchMailbox>> of_worker_;  // of feeders only
  std::vector<std::atomic<uint64_t>> direct_pkts_;                // by worker
  std::vector<uint32_t> feeders_;                                 // workers
  size_t next_ = 0;
};

}  // namespace batchplane
