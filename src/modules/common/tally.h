// SPDX-License-Identifier: BSD-3-Clause
// tally.h - a counter that one worker increments and any thread reads, at the cost of a plain
// addition.
#pragma once

#include <atomic>
#include <cstdint>

namespace batchplane {

// add and set: the worker only. value: any thread.
class Tally {
 public:
  void add(uint64_t n) noexcept { set(value() + n); }
  void set(uint64_t n) noexcept { count_.store(n, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t value() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> count_{0};
};

}  // namespace batchplane
