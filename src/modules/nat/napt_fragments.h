// SPDX-License-Identifier: BSD-3-Clause
// napt_fragments.h - remembers how a packet's first fragment was translated, for later fragments,
// which have no ports.
#pragma once

#include <algorithm>
#include <bit>

#include "modules/nat/napt_index.h"
#include "modules/nat/napt_session.h"

namespace batchplane::nat {

struct NaptFragment {
  NaptKey key;  // addresses, id and protocol
  uint64_t new_ends = 0;
  uint32_t since = 0;        // ticks
  uint16_t first_bytes = 0;  // payload of the first fragment; 0: the entry is empty
  uint8_t gate = 0;
};

// Set-associative, 4 ways; the oldest entry of a set is replaced. Owner: the worker.
class NaptFragments {
 public:
  NaptFragments(uint32_t max_packets, uint64_t seed)
      : places_(std::bit_ceil(std::max(max_packets, kWays))), seed_(seed) {}

  static NaptKey key_of(const net::Ipv4& ip) {
    return {ip.addresses_raw(), uint64_t{ip.protocol} << 16 | ip.id.raw()};
  }

  // Returns nullptr if the fragment is missing or older than `limit` ticks.
  [[nodiscard]] const NaptFragment* find(const NaptKey& key, uint32_t now,
                                         uint32_t limit) const noexcept {
    const NaptFragment* set = set_of(key);
    for (uint32_t i = 0; i < kWays; ++i) {
      if (set[i].first_bytes != 0 && set[i].key == key && now - set[i].since < limit)
        return &set[i];
    }
    return nullptr;
  }
  void remember(const NaptFragment& fragment) noexcept {
    auto* set = const_cast<NaptFragment*>(set_of(fragment.key));
    NaptFragment* place = set;
    for (uint32_t i = 0; i < kWays; ++i) {
      if (set[i].key == fragment.key) {
        place = &set[i];
        break;
      }
      if (set[i].first_bytes == 0 ||
          fragment.since - set[i].since > fragment.since - place->since) {
        place = place->first_bytes == 0 ? place : &set[i];
      }
    }
    *place = fragment;
  }

 private:
  static constexpr uint32_t kWays = 4;

  [[nodiscard]] const NaptFragment* set_of(const NaptKey& key) const {
    const uint64_t hash = mix_words(key.ends, key.rest, seed_);
    return &places_[static_cast<uint32_t>(hash) & (places_.size() - 1) & ~size_t{kWays - 1}];
  }

  BigArray<NaptFragment> places_;
  uint64_t seed_;
};

}  // namespace batchplane::nat
