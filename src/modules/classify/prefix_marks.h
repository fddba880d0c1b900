// SPDX-License-Identifier: BSD-3-Clause
// prefix_marks.h - longest-prefix match for many prefixes of few lengths, as subscribers have them:
// one hash table per length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/flat_table.h"
#include "base/net6.h"

namespace batchplane {

// `Prefix` gives an address as words.
template <uint32_t kWords>
class PrefixLengths {
 public:
  using Key = typename FlatTable<kWords>::Key;
  static constexpr uint32_t kMaxBulk = FlatTable<kWords>::kMaxBulk;

  // Bits beyond the length must be zero.
  void set(const Key& key, uint32_t length, uint32_t mark) {
    table_of(length).insert_or_assign(key, mark);
  }
  bool erase(const Key& key, uint32_t length) { return table_of(length).erase(key); }

  // Sets marks[i] for keys[i]; leaves it unchanged if no prefix matches.
  void find(const Key* keys, uint32_t n, uint32_t* marks) const noexcept {
    Key masked[kMaxBulk];
    uint32_t found[kMaxBulk];
    // Shortest first, so that longer prefixes overwrite shorter ones.
    for (const auto& [length, table] : tables_) {
      if (table.size() == 0) continue;
      for (uint32_t i = 0; i < n; ++i) masked[i] = mask(keys[i], length);
      table.find_bulk(masked, n, found);
      for (uint32_t i = 0; i < n; ++i) {
        if (found[i] != FlatTable<kWords>::kMissing) marks[i] = found[i];
      }
    }
  }

 private:
  static Key mask(const Key& key, uint32_t length) noexcept {
    if constexpr (kWords == 1) {
      return {key[0] & net::mask4(static_cast<uint8_t>(length))};
    } else {
      const net::Address6 mask = net::mask6(static_cast<uint8_t>(length));
      return {key[0] & mask.high, key[1] & mask.low};
    }
  }
  FlatTable<kWords>& table_of(uint32_t length) {
    const auto at = std::ranges::lower_bound(tables_, length, {}, &Table::first);
    if (at != tables_.end() && at->first == length) return at->second;
    return tables_.insert(at, {length, FlatTable<kWords>()})->second;
  }

  using Table = std::pair<uint32_t, FlatTable<kWords>>;
  std::vector<Table> tables_;  // by length
};

struct PrefixMarks {
  PrefixLengths<1> v4;
  PrefixLengths<2> v6;
};

}  // namespace batchplane
