// SPDX-License-Identifier: BSD-3-Clause
// live_table.h - tables that the control thread edits while workers look up in them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace batchplane {

// Tells when every worker has passed a quiescent point between two runs. Workers report by counting loops;
// parked or absent workers are not waited for. Owner of each slot: its worker.
class Quiescence {
 public:
  static constexpr uint32_t kMaxWorkers = 64;

  // Worker: call between two runs. One release store to its own cache line.
  void pass(uint32_t worker) noexcept {
    slots_[worker].loops.store(slots_[worker].loops.load(std::memory_order_relaxed) + 1,
                               std::memory_order_release);
  }
  // Worker: before its first and after its last run.
  void set_online(uint32_t worker, bool is_online) noexcept {
    slots_[worker].online.store(is_online, std::memory_order_seq_cst);
  }
  // Control thread: returns once no worker can still use a pointer loaded before the call.
  void wait() const;

 private:
  struct alignas(64) Slot {
    std::atomic<uint64_t> loops{0};
    std::atomic<bool> online{false};
  };
  Slot slots_[kMaxWorkers];
};

// Two instances of a table. Workers read one; edits go to the other, which is then swapped in, and,
// after a quiescent point, repeated on the first. Workers never wait and never run edit code.
// read(): worker. Everything else: control thread, serialised by the caller.
template <class T>
class LiveTable {
 public:
  LiveTable(std::unique_ptr<T> first, std::unique_ptr<T> second, const Quiescence* quiescence)
      : instances_{std::move(first), std::move(second)}, quiescence_(quiescence) {
    active_.store(instances_[0].get(), std::memory_order_release);
  }

  // Load once per call of process/classify; do not keep across calls.
  [[nodiscard]] const T& read() const noexcept { return *active_.load(std::memory_order_acquire); }

  // Applies `edit` to both instances, the hidden one first. If edit throws there, it must have left that
  // instance unchanged, and nothing becomes visible.
  void edit(const std::function<void(T&)>& edit) {
    T& hidden = *instances_[hidden_];
    edit(hidden);
    publish();
    edit(*instances_[hidden_]);
  }
  // Swaps in an instance built elsewhere, and replaces the second instance by `spare`. Returns when the old
  // one is no longer used.
  void replace(std::unique_ptr<T> next, std::unique_ptr<T> spare) {
    instances_[hidden_] = std::move(next);
    publish();
    instances_[hidden_] = std::move(spare);
  }
  // The visible instance, for control-side reading.
  [[nodiscard]] const T& current() const { return *instances_[hidden_ ^ 1]; }

 private:
  void publish() {
    active_.store(instances_[hidden_].get(), std::memory_order_release);
    hidden_ ^= 1;
    if (quiescence_ != nullptr) quiescence_->wait();
  }

  std::unique_ptr<T> instances_[2];
  uint32_t hidden_ = 1;
  const Quiescence* quiescence_;
  std::atomic<const T*> active_;
};

}  // namespace batchplane
