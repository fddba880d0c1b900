// SPDX-License-Identifier: BSD-3-Clause
// session_index.h - hash table from 32-bit tunnel endpoints and addresses to rules: half the size
// of a table for arbitrary keys, on huge pages. Most lookups read one cache line of it and nothing
// of the rule.
#pragma once

#include <nmmintrin.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/big_array.h"
#include "base/prefetch.h"

namespace batchplane::session {

// Value has a member `mark`, kMissing in empty slots. Keys are not 0. Many concurrent readers, or
// one writer alone: a LiveTable keeps them apart.
template <class Value>
class SessionIndex {
 public:
  static constexpr uint32_t kMissing = ~0U;

  SessionIndex() : slots_(std::make_unique<BigArray<Slot>>(kMinSlots)) {}

  [[nodiscard]] size_t size_bytes() const { return slots_->size_bytes(); }

  void insert_or_assign(uint32_t key, const Value& value) {
    if (Slot& known = place_of(key); known.value.mark != kMissing) {
      known.value = value;
      return;
    }
    if (2 * (size_t{n_keys_} + 1) > slots_->size()) grow();
    place_of(key) = {key, value};
    ++n_keys_;
  }

  // Moves later entries of the probe run into the hole where possible, so that runs stay
  // contiguous.
  void erase(uint32_t key) {
    Slot* const found = &place_of(key);
    if (found->value.mark == kMissing) return;
    auto hole = static_cast<uint32_t>(found - slots_->data());
    for (uint32_t next = (hole + 1) & mask_; at(next).value.mark != kMissing;
         next = (next + 1) & mask_) {
      const uint32_t from_home = (next - home_of(at(next).key)) & mask_;
      if (from_home < ((next - hole) & mask_)) continue;
      at(hole) = at(next);
      hole = next;
    }
    at(hole) = Slot{};
    --n_keys_;
  }

  [[nodiscard]] Value find(uint32_t key) const { return probe(key, home_of(key)); }
  static constexpr uint32_t kMaxBulk = 256;
  void find_bulk(const uint32_t* keys, uint32_t n, Value* values) const {
    if (slots_->size_bytes() <= kNearBytes) {
      for (uint32_t i = 0; i < n; ++i) values[i] = find(keys[i]);
      return;
    }
    uint32_t homes[kMaxBulk];
    for (uint32_t i = 0; i < n; ++i) {
      homes[i] = home_of(keys[i]);
      prefetch_for_read(&at(homes[i]));
    }
    for (uint32_t i = 0; i < n; ++i) values[i] = probe(keys[i], homes[i]);
  }

 private:
  struct alignas(sizeof(Value) == 4 ? 8 : 16) Slot {
    uint32_t key = 0;
    Value value{};
  };
  static constexpr uint32_t kMinSlots = 64;
  static constexpr size_t kNearBytes = 32U
                                       << 10;  // up to this size the table stays in the L1 cache

  [[nodiscard]] Slot& at(uint32_t i) { return (*slots_)[i]; }
  [[nodiscard]] const Slot& at(uint32_t i) const { return (*slots_)[i]; }
  [[nodiscard]] uint32_t home_of(uint32_t key) const { return _mm_crc32_u32(0x9e37, key) & mask_; }

  // The key's slot, or the free slot where it would go.
  Slot& place_of(uint32_t key) {
    uint32_t i = home_of(key);
    while (at(i).value.mark != kMissing && at(i).key != key) i = (i + 1) & mask_;
    return at(i);
  }

  // Compares two slots at a time without a branch between them. Key 0 matches an empty slot, whose
  // value says that nothing is there.
  [[nodiscard]] Value probe(uint32_t key, uint32_t i) const {
    for (;;) {
      const Slot& first = at(i);
      const Slot& second = at((i + 1) & mask_);
      const bool is_first = first.key == key;
      if (is_first || second.key == key) [[likely]]
        return is_first ? first.value : second.value;
      if (first.value.mark == kMissing || second.value.mark == kMissing) return Value{};
      i = (i + 2) & mask_;
    }
  }

  void grow() {
    auto old = std::make_unique<BigArray<Slot>>(2 * slots_->size());
    old.swap(slots_);
    mask_ = static_cast<uint32_t>(slots_->size() - 1);
    for (size_t i = 0; i < old->size(); ++i) {
      const Slot& slot = (*old)[i];
      if (slot.value.mark != kMissing) place_of(slot.key) = slot;
    }
  }

  std::unique_ptr<BigArray<Slot>> slots_;
  uint32_t mask_ = kMinSlots - 1;
  uint32_t n_keys_ = 0;
};

}  // namespace batchplane::session
