// SPDX-License-Identifier: BSD-3-Clause
// fib_heap.cc - longest-prefix match as a 16-8-8 trie with expanded prefixes, for builds without
// DPDK.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "modules/fib.h"

namespace batchplane {
namespace {

// One slot of a node: the best prefix that covers the whole slot, and a node of 256 slots below it
// when longer prefixes exist. The child repeats what covers it, so a lookup ends at the last node.
struct Slot {
  uint32_t id = 0;
  int32_t child = -1;
  uint8_t length = 0;  // of the prefix that gave the id
};

uint64_t key_of(net::Prefix4 prefix) { return uint64_t{prefix.address} << 8 | prefix.length; }

}  // namespace

struct Fib::Impl {
  explicit Impl(uint32_t miss_id) : slots(1U << 16, Slot{.id = miss_id}), miss(miss_id) {}

  std::vector<Slot> slots;  // the root, then nodes of 256
  std::unordered_map<uint64_t, uint32_t> prefixes;
  uint32_t miss;

  int32_t new_child(uint32_t slot) {
    const Slot filling{.id = slots[slot].id, .child = -1, .length = slots[slot].length};
    const auto first = static_cast<int32_t>(slots.size());
    slots.resize(slots.size() + 256, filling);
    slots[slot].child = first;
    return first;
  }

  // Slots [first, first + n) and all below them: those that `is_replaced` get the new prefix.
  template <class Pred>
  void fill(uint32_t first, uint32_t n, const Slot& with, Pred is_replaced) {
    for (uint32_t i = first; i < first + n; ++i) {
      if (is_replaced(slots[i])) {
        slots[i].id = with.id;
        slots[i].length = with.length;
      }
      if (slots[i].child >= 0) fill(static_cast<uint32_t>(slots[i].child), 256, with, is_replaced);
    }
  }

  template <class Pred>
  void fill_prefix(net::Prefix4 prefix, const Slot& with, Pred is_replaced) {
    uint32_t base = 0;
    uint32_t index = prefix.address >> 16;
    uint32_t bits = 16;
    while (prefix.length > bits) {
      const uint32_t slot = base + index;
      base = static_cast<uint32_t>(slots[slot].child >= 0 ? slots[slot].child : new_child(slot));
      bits += 8;
      index = (prefix.address >> (32 - bits)) & 255;
    }
    fill(base + index, 1U << (bits - prefix.length), with, is_replaced);
  }

  // The longest prefix that holds `prefix` and is shorter.
  Slot covering(net::Prefix4 prefix) const {
    for (int32_t length = prefix.length - 1; length >= 0; --length) {
      const auto bits = static_cast<uint8_t>(length);
      const auto it = prefixes.find(key_of({prefix.address & net::mask4(bits), bits}));
      if (it != prefixes.end()) return {.id = it->second, .length = bits};
    }
    return {.id = miss};
  }
};

uint32_t FibConfig::default_tbl8() const {
  return std::min(std::max(max_prefixes / 4, 256U), max_id());
}

uint64_t Fib::memory_bytes(const FibConfig& config) {
  return ((1ULL << 16) + uint64_t{config.tbl8()} * 512) * sizeof(Slot) +
         uint64_t{config.max_prefixes} * 48;
}

Fib::Fib(const FibConfig& config)
    : config_(config), impl_(std::make_unique<Impl>(config.miss_id)) {}

Fib::~Fib() = default;

void Fib::set(net::Prefix4 prefix, uint32_t id) {
  const uint64_t key = key_of(prefix);
  if (impl_->prefixes.size() >= config_.max_prefixes && !impl_->prefixes.contains(key)) {
    throw ConfigError("no room for " + net::format_prefix4(prefix) + ": the table holds " +
                          std::to_string(config_.max_prefixes) + " prefixes at most",
                      "", "raise max_prefixes");
  }
  impl_->prefixes[key] = id;
  impl_->fill_prefix(prefix, {.id = id, .length = prefix.length},
                     [&](const Slot& slot) { return slot.length <= prefix.length; });
}

bool Fib::erase(net::Prefix4 prefix) {
  if (impl_->prefixes.erase(key_of(prefix)) == 0) return false;
  // Within the prefix's own range, slots of its length are its own.
  impl_->fill_prefix(prefix, impl_->covering(prefix),
                     [&](const Slot& slot) { return slot.length == prefix.length; });
  return true;
}

void Fib::lookup(const uint32_t* addresses, uint64_t* ids, uint32_t n) const noexcept {
  const Slot* slots = impl_->slots.data();
  for (uint32_t i = 0; i < n; ++i) {
    const Slot* slot = slots + (addresses[i] >> 16);
    if (slot->child >= 0) slot = slots + slot->child + ((addresses[i] >> 8) & 255);
    if (slot->child >= 0) slot = slots + slot->child + (addresses[i] & 255);
    ids[i] = slot->id;
  }
}

const char* Fib::lookup_path() const { return "scalar"; }

}  // namespace batchplane
