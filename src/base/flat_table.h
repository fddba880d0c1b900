// SPDX-License-Identifier: BSD-3-Clause
// flat_table.h - hash table for read-mostly, batched look-ups with keys of 8 to 64 bytes.
//
// Open addressing with linear probing over one array of {key, value}. The load factor is at most 1/2 (1/4 for
// small tables), so that most look-ups end in the first two slots, which are compared without a branch.
#pragma once

#include <nmmintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace batchplane {

// Many concurrent readers, or one writer alone: a LiveTable keeps them apart. Updates are amortised O(1);
// growing rebuilds the array.
template <uint32_t kWords>
class FlatTable {
  static_assert(kWords >= 1 && kWords <= 8);

 public:
  using Key = std::array<uint64_t, kWords>;
  static constexpr uint32_t kMissing = ~0U;  // never a value
  static constexpr uint32_t kMaxBulk = 256;

  FlatTable() : slots_(kMinSlots) {}

  [[nodiscard]] uint32_t size() const { return n_keys_; }
  [[nodiscard]] size_t size_bytes() const { return slots_.size() * sizeof(Slot); }

  // Returns true when the key is new.
  bool insert_or_assign(const Key& key, uint32_t value) {
    if (uint32_t* found = find_slot(key); found != nullptr) {
      *found = value;
      return false;
    }
    if (wanted_slots(n_keys_ + 1) > slots_.size()) rebuild(wanted_slots(n_keys_ + 1));
    place(key, value);
    ++n_keys_;
    return true;
  }

  // Moves later entries of the probe run into the hole, so that a run never has holes.
  bool erase(const Key& key) {
    uint32_t hole = hash(key) & mask_;
    while (slots_[hole].key != key || slots_[hole].value == kMissing) {
      if (slots_[hole].value == kMissing) return false;
      hole = (hole + 1) & mask_;
    }
    for (uint32_t next = (hole + 1) & mask_; slots_[next].value != kMissing;
         next = (next + 1) & mask_) {
      const uint32_t home = hash(slots_[next].key) & mask_;
      if (((next - home) & mask_) < ((next - hole) & mask_)) continue;
      slots_[hole] = slots_[next];
      hole = next;
    }
    slots_[hole] = Slot{};
    --n_keys_;
    return true;
  }

  // kMissing when the key is absent.
  [[nodiscard]] uint32_t find(const Key& key) const { return probe(key, hash(key) & mask_); }

  // values[i] = value of keys[i], or kMissing; n <= kMaxBulk.
  void find_bulk(const Key* keys, uint32_t n, uint32_t* values) const {
    if (slots_.size() <= kNearSlots) {
      for (uint32_t i = 0; i < n; ++i) values[i] = probe(keys[i], hash(keys[i]) & mask_);
      return;
    }
    uint32_t at[kMaxBulk];
    for (uint32_t i = 0; i < n; ++i) {
      at[i] = hash(keys[i]) & mask_;
      __builtin_prefetch(&slots_[at[i]]);
    }
    for (uint32_t i = 0; i < n; ++i) values[i] = probe(keys[i], at[i]);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.value != kMissing) visit(slot.key, slot.value);
    }
  }

  static uint32_t hash(const Key& key) {
    uint64_t low = 0x9e3779b9;
    uint64_t high = 0x85ebca6b;
    for (uint32_t w = 0; w < kWords; w += 2) low = _mm_crc32_u64(low, key[w]);
    for (uint32_t w = 1; w < kWords; w += 2) high = _mm_crc32_u64(high, key[w]);
    if constexpr (kWords == 1) return static_cast<uint32_t>(low);
    return static_cast<uint32_t>(low ^ (high * 0x9e3779b1));
  }

 private:
  struct Slot {
    Key key{};
    uint32_t value = kMissing;
  };
  static constexpr uint32_t kMinSlots = 16;
  static constexpr uint32_t kSparseSlots = 4096;   // up to here at most a quarter full
  static constexpr size_t kNearBytes = 32U << 10;  // larger tables likely exceed the L1 cache
  static constexpr size_t kNearSlots = kNearBytes / sizeof(Slot);

  static size_t wanted_slots(uint32_t n_keys) {
    size_t wanted = kMinSlots;
    while (wanted < 2 * static_cast<size_t>(n_keys) ||
           (wanted < kSparseSlots && wanted < 4 * static_cast<size_t>(n_keys))) {
      wanted *= 2;
    }
    return wanted;
  }

  // An empty slot has an all-zero key and the value kMissing. Runs have no holes, so a match in either slot
  // is the answer, even when the zero key "matches" an empty slot.
  [[nodiscard]] uint32_t probe(const Key& key, uint32_t at) const {
    for (;;) {
      const Slot& first = slots_[at];
      const Slot& second = slots_[(at + 1) & mask_];
      const uint64_t differs_first = difference(first.key, key);
      const uint64_t differs_second = difference(second.key, key);
      if (differs_first == 0 || differs_second == 0) [[likely]] {
        return differs_first == 0 ? first.value : second.value;
      }
      if (first.value == kMissing || second.value == kMissing) return kMissing;
      at = (at + 2) & mask_;
    }
  }

  static uint64_t difference(const Key& a, const Key& b) {
    uint64_t differs = 0;
    for (uint32_t w = 0; w < kWords; ++w) differs |= a[w] ^ b[w];
    return differs;
  }

  uint32_t* find_slot(const Key& key) {
    for (uint32_t at = hash(key) & mask_; slots_[at].value != kMissing; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return &slots_[at].value;
    }
    return nullptr;
  }

  void place(const Key& key, uint32_t value) {
    uint32_t at = hash(key) & mask_;
    while (slots_[at].value != kMissing) at = (at + 1) & mask_;
    slots_[at] = {key, value};
  }

  void rebuild(size_t n_slots) {
    std::vector<Slot> old(n_slots);
    old.swap(slots_);
    mask_ = static_cast<uint32_t>(n_slots - 1);
    for (const Slot& slot : old) {
      if (slot.value != kMissing) place(slot.key, slot.value);
    }
  }

  std::vector<Slot> slots_;
  uint32_t mask_ = kMinSlots - 1;
  uint32_t n_keys_ = 0;
};

}  // namespace batchplane
