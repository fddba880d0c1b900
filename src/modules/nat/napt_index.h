// SPDX-License-Identifier: BSD-3-Clause
// napt_index.h - hash index of one writer: from hashes to numbers of entries that lie elsewhere.
//
// A bucket is one cache line: 15 tagged numbers, all compared at once, and how many entries had to
// go on to a later bucket because this one was full. Inserting and erasing are O(1), without
// tombstones or rebuilding; nothing is allocated after construction.
#pragma once

#include <immintrin.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "modules/headers/flow_key.h"

namespace batchplane::nat {

// An array that is wholly in memory before the first packet; on huge pages where the system gives
// them without being asked twice.
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
    size_t mapped_bytes = 0;  // 0: of the heap
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
  // New memory, where huge pages can be: what the heap gives may lie on small ones already.
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

class NaptIndex {
 public:
  static constexpr uint32_t kNone = 0;  // never a number
  static constexpr uint32_t kMaxNumber = (1U << 24) - 1;

  NaptIndex(uint32_t max_keys, uint64_t seed)
      : buckets_(std::bit_ceil((max_keys + kUsualKeys - 1) / kUsualKeys)),
        mask_(static_cast<uint32_t>(buckets_.size() - 1)),
        seed_(seed) {}

  // The halves of a 128-bit product, folded; senders do not know the seed.
  [[nodiscard]] uint64_t hash(uint64_t a, uint64_t b) const {
    const auto product =
        static_cast<unsigned __int128>(a ^ seed_) * (b ^ seed_ ^ 0x4b33a62ed433d4a3ULL);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  void prefetch(uint64_t hash) const { __builtin_prefetch(&buckets_[home_of(hash)]); }

  // The number that is most likely that of the key; the caller compares.
  [[nodiscard]] uint32_t candidate(uint64_t hash) const {
    const Bucket& bucket = buckets_[home_of(hash)];
    const uint32_t found = matches(bucket, tag_of(hash));
    return found == 0 ? kNone : bucket.slots[std::countr_zero(found)] & kMaxNumber;
  }
  // `is_it(number)` compares the entry's key.
  template <class IsIt>
  [[nodiscard]] uint32_t find(uint64_t hash, IsIt is_it) const {
    for (uint32_t at = home_of(hash);; at = (at + 1) & mask_) {
      const Bucket& bucket = buckets_[at];
      for (uint32_t found = matches(bucket, tag_of(hash)); found != 0; found &= found - 1) {
        const uint32_t number = bucket.slots[std::countr_zero(found)] & kMaxNumber;
        if (is_it(number)) return number;
      }
      if (bucket.n_passed == 0) return kNone;
    }
  }
  // The key is not there; the index holds fewer than max_keys.
  void insert(uint64_t hash, uint32_t number) {
    for (uint32_t at = home_of(hash);; at = (at + 1) & mask_) {
      Bucket& bucket = buckets_[at];
      if (const uint32_t empty = matches(bucket, 0); empty != 0) {
        bucket.slots[std::countr_zero(empty)] = tag_of(hash) << kTagShift | number;
        return;
      }
      ++bucket.n_passed;
    }
  }
  // The key is there.
  void erase(uint64_t hash, uint32_t number) {
    const uint32_t wanted = tag_of(hash) << kTagShift | number;
    for (uint32_t at = home_of(hash);; at = (at + 1) & mask_) {
      Bucket& bucket = buckets_[at];
      for (uint32_t found = matches(bucket, tag_of(hash)); found != 0; found &= found - 1) {
        uint32_t& slot = bucket.slots[std::countr_zero(found)];
        if (slot != wanted) continue;
        slot = 0;
        return;
      }
      --bucket.n_passed;
    }
  }
  [[nodiscard]] size_t size_bytes() const { return buckets_.size_bytes(); }

 private:
  static constexpr uint32_t kSlots = 15;
  static constexpr uint32_t kUsualKeys = 8;  // per bucket at most, on average
  static constexpr uint32_t kTagShift = 24;
  struct alignas(64) Bucket {
    uint32_t slots[kSlots] = {};  // tag above the number; 0 = empty
    uint32_t n_passed = 0;
  };

  [[nodiscard]] uint32_t home_of(uint64_t hash) const {
    return static_cast<uint32_t>(hash) & mask_;
  }
  static uint32_t tag_of(uint64_t hash) {
    const auto tag = static_cast<uint32_t>(hash >> 56);
    return tag == 0 ? 1 : tag;
  }
  static uint32_t matches(const Bucket& bucket, uint32_t tag) {
    const auto* slots = reinterpret_cast<const __m256i*>(bucket.slots);
    const __m256i wanted = _mm256_set1_epi32(static_cast<int>(tag));
    const auto equal = [&](const __m256i* part) {
      const __m256i tags = _mm256_srli_epi32(_mm256_load_si256(part), kTagShift);
      return static_cast<uint32_t>(
          _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(tags, wanted))));
    };
    return (equal(slots) | equal(slots + 1) << 8) & ((1U << kSlots) - 1);
  }

  BigArray<Bucket> buckets_;
  uint32_t mask_;
  uint64_t seed_;
};

}  // namespace batchplane::nat
