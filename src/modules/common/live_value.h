// SPDX-License-Identifier: BSD-3-Clause
// live_value.h - a small value that the control thread changes while workers read it, all in one
// cache line.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/module/live_table.h"

namespace batchplane {

// Like LiveTable, but inline, for values of at most half a cache line. read: worker, once per call.
// set: control thread.
template <class T>
class alignas(64) LiveValue {
  static_assert(sizeof(T) <= 24);

 public:
  LiveValue(const T& value, const Quiescence* quiescence)
      : values_{value, value}, quiescence_(quiescence) {}

  [[nodiscard]] const T& read() const noexcept {
    return values_[active_.load(std::memory_order_acquire)];
  }
  // Returns once no worker reads the previous value.
  void set(const T& value) {
    const uint32_t hidden = active_.load(std::memory_order_relaxed) ^ 1;
    values_[hidden] = value;
    active_.store(hidden, std::memory_order_release);
    if (quiescence_ != nullptr) quiescence_->wait();
  }

 private:
  T values_[2];
  std::atomic<uint32_t> active_{0};
  const Quiescence* quiescence_;
};

}  // namespace batchplane
