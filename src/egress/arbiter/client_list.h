// SPDX-License-Identifier: BSD-3-Clause
// client_list.h - tracks which mailboxes have packets, so that ten thousand cost no more than the
// active ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/spsc_ring.h"

namespace batchplane::egress {

// Clients announce themselves; each core of clients has a list with one producer at a time. A
// client is announced once until the arbiter releases it, so a list never holds more than all
// clients.
//
// The arbiter releases a client in two steps: it clears the announcement and then checks the
// mailbox once more. A client first puts and then announces. So either the client finds its
// announcement cleared and announces itself again, or the arbiter's second check finds the packet.
class ClientList {
 public:
  ClientList(uint32_t n_clients, uint32_t n_cores)
      : announced_(std::make_unique<Flag[]>(n_clients)), is_active_(n_clients, false) {
    // A client may be in a list twice: announced again before the arbiter has read the first entry.
    for (uint32_t c = 0; c < n_cores; ++c) {
      lists_.push_back(std::make_unique<SpscRing<uint32_t>>(2 * n_clients));
    }
    active_.reserve(n_clients);
  }

  // Client: call after putting packets into its mailbox.
  void announce(uint32_t client, uint32_t core) noexcept {
    if (announced_[client].is_set.exchange(true, std::memory_order_seq_cst)) return;
    lists_[core]->enqueue(&client, 1);
  }

  // Arbiter: begins a round. Clients announced since the last one become active.
  void collect() noexcept {
    for (const auto& list : lists_) {
      uint32_t found[kAtOnce];
      while (const uint32_t n = list->dequeue(found, kAtOnce)) {
        for (uint32_t k = 0; k < n; ++k) make_active(found[k]);
      }
    }
  }
  // Arbiter: visit(client) of each active client returns how many packets it took. If none, the
  // client is released, and is_empty(client) is the second check of its mailbox.
  template <class Visit, class IsEmpty>
  void for_each_active(Visit&& visit, IsEmpty&& is_empty) noexcept {
    size_t kept = 0;
    for (size_t k = 0; k < active_.size(); ++k) {
      const uint32_t client = active_[k];
      if (visit(client) != 0 || !let_go(client, is_empty)) active_[kept++] = client;
    }
    active_.resize(kept);
  }
  [[nodiscard]] size_t n_active() const { return active_.size(); }

  // The first step of releasing a client, separate for tests of the interleaving.
  void take_back(uint32_t client) noexcept {
    announced_[client].is_set.store(false, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

 private:
  static constexpr uint32_t kAtOnce = 32;
  struct Flag {
    std::atomic<bool> is_set{false};
  };

  void make_active(uint32_t client) noexcept {
    if (is_active_[client]) return;
    is_active_[client] = true;
    active_.push_back(client);
  }
  template <class IsEmpty>
  bool let_go(uint32_t client, IsEmpty&& is_empty) noexcept {
    take_back(client);
    if (!is_empty(client)) {
      announced_[client].is_set.store(true, std::memory_order_relaxed);
      return false;
    }
    is_active_[client] = false;
    return true;
  }

  std::unique_ptr<Flag[]> announced_;
  std::vector<std::unique_ptr<SpscRing<uint32_t>>> lists_;  // by core
  std::vector<bool> is_active_;                             // known to the arbiter
  std::vector<uint32_t> active_;
};

}  // namespace batchplane::egress
