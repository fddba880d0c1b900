// SPDX-License-Identifier: BSD-3-Clause
// watched.h - a number that one thread uses like a plain one while others read it.
#pragma once

namespace batchplane {

// Only accesses that can race are atomic: the owner's writes, and reads by other threads.
template <class T>
class Watched {
 public:
  Watched() = default;
  Watched(const Watched& other) : value_(other.value_) {}
  ~Watched() = default;

  // Owner.
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
