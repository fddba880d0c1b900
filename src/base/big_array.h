// SPDX-License-Identifier: BSD-3-Clause
// big_array.h - an array that is fully in memory before the first packet, on huge pages if the system grants
// them through madvise().
#pragma once

#include <stdlib.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

namespace batchplane {

template <class T>
class BigArray {
 public:
  explicit BigArray(size_t n) : size_(n), data_(allocate(n)) {
    for (size_t i = 0; i < n; ++i) new (&data_[i]) T{};
  }
  [[nodiscard]] T& operator[](size_t i) { return data_[i]; }
  [[nodiscard]] const T& operator[](size_t i) const { return data_[i]; }
  [[nodiscard]] T* data() { return data_.get(); }
  [[nodiscard]] const T* data() const { return data_.get(); }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] size_t size_bytes() const { return size_ * sizeof(T); }

 private:
  static_assert(std::is_trivially_destructible_v<T>);
  struct Free {
    size_t mapped_bytes = 0;  // 0: from the heap
    void operator()(T* p) const {
      if (mapped_bytes == 0) {
        ::free(p);
      } else {
        (void)::munmap(p, mapped_bytes);
      }
    }
  };
  using Owner = std::unique_ptr<T[], Free>;
  static constexpr size_t kHugeBytes = size_t{2} << 20;

  static size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
  static Owner allocate(size_t n) {
    const size_t wanted = n * sizeof(T);
    if (wanted >= kHugeBytes) return map(rounded(wanted, kHugeBytes));
    void* memory = ::aligned_alloc(64, wanted == 0 ? 64 : rounded(wanted, 64));
    if (memory == nullptr) throw std::bad_alloc();
    return Owner(static_cast<T*>(memory), Free{});
  }
  // Maps new memory, aligned for huge pages: memory from the heap may already be backed by small pages.
  static Owner map(size_t bytes) {
    void* const memory = ::mmap(nullptr, bytes + kHugeBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    auto* const begin = static_cast<uint8_t*>(memory);
    const size_t before = -reinterpret_cast<uintptr_t>(begin) & (kHugeBytes - 1);
    if (before != 0) (void)::munmap(begin, before);
    (void)::munmap(begin + before + bytes, kHugeBytes - before);
    (void)::madvise(begin + before, bytes, MADV_HUGEPAGE);
    return Owner(reinterpret_cast<T*>(begin + before), Free{bytes});
  }

  size_t size_;
  Owner data_;
};

}  // namespace batchplane
