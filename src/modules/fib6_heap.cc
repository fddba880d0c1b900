// SPDX-License-Identifier: BSD-3-Clause
// fib6_heap.cc - longest-prefix match as a trie with a node for every byte of an address, for
// builds without DPDK.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "modules/fib6.h"

namespace batchplane {
namespace {

constexpr uint32_t kSlots = 256;

// The best prefix that ends within this node and covers the slot, and the node below it.
struct Slot {
  uint32_t id = 0;
  int32_t child = -1;
  int16_t length = -1;  // -1: no prefix ends here
};

uint32_t byte_of(const net::Address6& address, uint32_t i) {
  const uint64_t half = i < 8 ? address.high : address.low;
  return (half >> (56 - 8 * (i % 8))) & 255;
}

}  // namespace

uint32_t default_blocks6(const FibConfig& config) {
  const uint64_t usual = std::max<uint64_t>(uint64_t{config.max_prefixes} * 3, 4096);
  const uint64_t wanted = config.max_tbl8 != 0 ? config.max_tbl8 : usual;
  return static_cast<uint32_t>(std::min<uint64_t>(wanted, config.max_id()));
}

struct Fib6::Impl {
  std::vector<Slot> slots = std::vector<Slot>(kSlots);  // nodes of 256; the first is the root
  std::map<net::Prefix6, uint32_t> prefixes;

  // The first of the node's slots in which `prefix` ends, made where it is missing.
  uint32_t node_of(const net::Prefix6& prefix) {
    uint32_t base = 0;
    for (uint32_t bits = 8; prefix.length > bits; bits += 8) {
      const uint32_t at = base + byte_of(prefix.address, bits / 8 - 1);
      if (slots[at].child < 0) {
        slots[at].child = static_cast<int32_t>(slots.size());
        slots.resize(slots.size() + kSlots);
      }
      base = static_cast<uint32_t>(slots[at].child);
    }
    return base;
  }

  // Slots of the node that `prefix` covers, as long as `may_change` agrees.
  template <class Pred>
  void fill(const net::Prefix6& prefix, const Slot& with, Pred may_change) {
    const uint32_t depth = prefix.length == 0 ? 0 : (prefix.length - 1) / 8;
    const uint32_t first = node_of(prefix) + byte_of(prefix.address, depth);
    const uint32_t n = 1U << (8 * (depth + 1) - prefix.length);
    for (uint32_t i = first; i < first + n; ++i) {
      if (!may_change(slots[i])) continue;
      slots[i].id = with.id;
      slots[i].length = with.length;
    }
  }

  // The longest shorter prefix around `prefix` that ends in the same node; none: length -1.
  [[nodiscard]] Slot covering(const net::Prefix6& prefix) const {
    const int least = prefix.length <= 8 ? 0 : (prefix.length - 1) / 8 * 8 + 1;
    for (int length = prefix.length - 1; length >= least; --length) {
      const auto bits = static_cast<uint8_t>(length);
      const auto it = prefixes.find({prefix.address & net::mask6(bits), bits});
      if (it != prefixes.end()) return {.id = it->second, .length = bits};
    }
    return {};
  }
};

uint64_t Fib6::memory_bytes(const FibConfig& config) {
  return uint64_t{default_blocks6(config)} * kSlots * sizeof(Slot) +
         uint64_t{config.max_prefixes} * 80;
}

Fib6::Fib6(const FibConfig& config) : config_(config), impl_(std::make_unique<Impl>()) {}

Fib6::~Fib6() = default;

void Fib6::set(const net::Prefix6& prefix, uint32_t id) {
  if (impl_->prefixes.size() >= config_.max_prefixes && !impl_->prefixes.contains(prefix)) {
    throw ConfigError("no room for " + net::format_prefix6(prefix) + ": the table holds " +
                          std::to_string(config_.max_prefixes) + " prefixes at most",
                      "", "raise max_prefixes");
  }
  impl_->prefixes[prefix] = id;
  impl_->fill(prefix, {.id = id, .length = prefix.length},
              [&](const Slot& slot) { return slot.length <= prefix.length; });
}

bool Fib6::erase(const net::Prefix6& prefix) {
  if (impl_->prefixes.erase(prefix) == 0) return false;
  impl_->fill(prefix, impl_->covering(prefix),
              [&](const Slot& slot) { return slot.length == prefix.length; });
  return true;
}

void Fib6::lookup(const Bytes* addresses, uint64_t* ids, uint32_t n) const noexcept {
  const Slot* slots = impl_->slots.data();
  for (uint32_t i = 0; i < n; ++i) {
    ids[i] = config_.miss_id;
    uint32_t base = 0;
    for (const uint8_t byte : addresses[i]) {
      const Slot& slot = slots[base + byte];
      if (slot.length >= 0) ids[i] = slot.id;
      if (slot.child < 0) break;
      base = static_cast<uint32_t>(slot.child);
    }
  }
}

const char* Fib6::lookup_path() const { return "scalar"; }

}  // namespace batchplane
