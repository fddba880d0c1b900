// SPDX-License-Identifier: BSD-3-Clause
// watched.h - a number that one thread uses like a plain one while others look at it.
#pragma once

namespace batchplane {

// Only what others could meet is atomic: what the owner writes, and what they read.
template <class T>
class Watched {
 public:
  Watched() = default;
  Watched(const Watched& other) : value_(other.value_) {}
  ~Watched() = default;

  // The owner.
  Watched& operator=(const Watched& other) noexcept { return *this = other.value_; }
  Watched& operator=(T value) noexcept {
    __atomic_store_n(&value_, value, __ATOMIC_RELAXED);
    return *this;
  }
  operator T() const noexcept { return value_; }  // NOLINT(google-explicit-constructor)
  Watched& operator+=(T n) noexcept { return *this = static_cast<T>(value_ + n); }
  Watched& operator-=(T n) noexcept { return *this = static_cast<T>(value_ - n); }
  Watched& operator++() noexcept { return *this += 1; }
  Watched& operator--() noexcept { return *this -= 1; }

  // Any thread.
  [[nodiscard]] T peek() const noexcept { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }

 private:
  T value_{};
};

}  // namespace batchplane
