// SPDX-License-Identifier: BSD-3-Clause
// napt_index.h - single-writer hash index: maps hashes to numbers of entries stored elsewhere.
//
// A bucket is one cache line: 15 tagged numbers, compared all at once, and a count of the entries
// that overflowed to a later bucket because this one was full. Inserting and erasing are O(1),
// without tombstones or rehashing; nothing is allocated after construction.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/big_array.h"
#include "modules/headers/flow_key.h"

namespace batchplane::nat {

class NaptIndex {
 public:
  static constexpr uint32_t kNone = 0;  // never used as a number
  static constexpr uint32_t kMaxNumber = (1U << 24) - 1;

  NaptIndex(uint32_t max_keys, uint64_t seed)
      : buckets_(std::bit_ceil((max_keys + kUsualKeys - 1) / kUsualKeys)),
        mask_(static_cast<uint32_t>(buckets_.size() - 1)),
        seed_(seed) {}

  // XOR of the halves of a 128-bit product; senders do not know the seed.
  [[nodiscard]] uint64_t hash(uint64_t a, uint64_t b) const {
    const auto product =
        static_cast<unsigned __int128>(a ^ seed_) * (b ^ seed_ ^ 0x4b33a62ed433d4a3ULL);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  void prefetch(uint64_t hash) const { __builtin_prefetch(&buckets_[home_of(hash)]); }

  // The most likely entry for the key; the caller must compare the keys.
  [[nodiscard]] uint32_t candidate(uint64_t hash) const {
    const Bucket& bucket = buckets_[home_of(hash)];
    const uint32_t found = matches(bucket, tag_of(hash));
    return found == 0 ? kNone : bucket.slots[std::countr_zero(found)] & kMaxNumber;
  }
  // `is_it(number)` compares the keys.
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
  // Requires that the key is absent and the index holds fewer than max_keys.
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
  // Requires that the key is present.
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
  static constexpr uint32_t kUsualKeys = 8;  // average load of a bucket at most
  static constexpr uint32_t kTagShift = 24;
  struct alignas(64) Bucket {
    uint32_t slots[kSlots] = {};  // tag in the bits above the number; 0 = empty
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
