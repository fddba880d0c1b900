// SPDX-License-Identifier: BSD-3-Clause
// egress_mailboxes.h - the path of packets to an egress scheduler: a mailbox for each sending
// worker; the scheduling worker needs none.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/module/feeder_rings.h"
#include "egress/arbiter/batch_mailbox.h"
#include "modules/egress/egress_scheduler.h"

namespace batchplane {

class EgressMailboxes {
 public:
  EgressMailboxes(uint32_t n_workers, uint32_t mailbox_pkts)
      : size_pkts_(mailbox_pkts), mailboxes_(n_workers, mailbox_pkts), direct_pkts_(n_workers) {}
  [[nodiscard]] uint32_t size_pkts() const { return size_pkts_; }  // of each mailbox
  void set_feeders(const std::vector<uint32_t>& workers) { mailboxes_.set_feeders(workers); }
  [[nodiscard]] uint32_t capacity_pkts() const { return mailboxes_.max_pkts(); }

  // For a sending worker.
  uint32_t put(uint32_t worker, const egress::Descriptor* pkts, uint32_t n) noexcept {
    return mailboxes_[worker].put(pkts, n);
  }
  void note_direct(uint32_t worker, uint64_t n) noexcept { bump(direct_pkts_[worker], n); }
  // All packets that this worker has ever put into its mailbox or directly into the scheduler.
  [[nodiscard]] uint64_t put_pkts(uint32_t worker) const {
    return direct_pkts_[worker].load(std::memory_order_acquire) + mailboxes_[worker].put_pkts();
  }
  [[nodiscard]] uint64_t put_pkts() const {
    uint64_t put = 0;
    for (const uint32_t w : mailboxes_.feeders()) put += put_pkts(w);
    return put;
  }

  // The scheduling worker. Takes packets until there is no room left to record refusals.
  void take_all(EgressScheduler& scheduler, EgressRefusals& refusals) noexcept {
    for (size_t k = 0; k < mailboxes_.feeders().size() && refusals.n < EgressRefusals::kMax; ++k) {
      scheduler.take(mailboxes_.next(), refusals);
    }
  }
  bool take_one(egress::Descriptor& pkt) noexcept {
    for (const uint32_t w : mailboxes_.feeders()) {
      if (mailboxes_[w].take(&pkt, 1) == 1) return true;
    }
    return false;
  }

  // In an apply, while no worker runs: takes over the mailboxes with the same worker and size.
  // Returns the number of packets taken from them so far.
  uint64_t adopt(EgressMailboxes& old) noexcept {
    uint64_t taken_pkts = 0;
    for (const uint32_t w : mailboxes_.feeders()) {
      if (mailboxes_.take_over(old.mailboxes_, w)) taken_pkts += mailboxes_[w].taken_pkts();
    }
    return taken_pkts;
  }
  // Counts packets that an apply put in without a mailbox.
  void note_moved(uint64_t n) noexcept { note_direct(mailboxes_.feeders().front(), n); }

 private:
  const uint32_t size_pkts_;
  FeederRings<egress::BatchMailbox> mailboxes_;
  std::vector<std::atomic<uint64_t>> direct_pkts_;  // by worker
};

}  // namespace batchplane
