// SPDX-License-Identifier: BSD-3-Clause
// prefix_map.h - longest-prefix match for either IP version by one hash map per prefix length,
// using memory only for the prefixes: for builds without DPDK, or with EAL not started.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/net6.h"
#include "modules/route/fib.h"

namespace batchplane {

// Threads: as for Fib.
template <class Prefix>
class PrefixMap {
 public:
  using Address = std::remove_cvref_t<decltype(Prefix::address)>;

  // Throws ConfigError if the table is full and leaves it unchanged.
  void set(const FibConfig& config, const Prefix& prefix, uint32_t id) {
    Ids& ids = of_length(prefix.length);
    if (n_prefixes_ >= config.max_prefixes && !ids.contains(prefix.address)) {
      throw ConfigError("no room for " + text_of(prefix) + ": the table holds " +
                            std::to_string(config.max_prefixes) + " prefixes at most",
                        "", "raise max_prefixes");
    }
    n_prefixes_ += ids.insert_or_assign(prefix.address, id).second ? 1 : 0;
  }

  // False if it was not there.
  bool erase(const Prefix& prefix) {
    if (of_length(prefix.length).erase(prefix.address) == 0) return false;
    --n_prefixes_;
    return true;
  }

  [[nodiscard]] uint32_t find(const Address& address, uint32_t miss_id) const noexcept {
    for (const auto& [length, ids] : lengths_) {
      const auto it = ids.find(masked(address, length));
      if (it != ids.end()) return it->second;
    }
    return miss_id;
  }

  // An upper estimate for that many prefixes.
  [[nodiscard]] static uint64_t memory_bytes(uint32_t n_prefixes) {
    return uint64_t{n_prefixes} * (sizeof(typename Ids::value_type) + 4 * sizeof(void*));
  }

 private:
  struct Hash {
    size_t operator()(uint32_t address) const { return address * 0x9e3779b97f4a7c15ULL; }
    size_t operator()(const net::Address6& address) const {
      return (address.high * 0x9e3779b97f4a7c15ULL) ^ address.low;
    }
  };
  using Ids = std::unordered_map<Address, uint32_t, Hash>;

  static uint32_t masked(uint32_t address, uint8_t length) { return address & net::mask4(length); }
  static net::Address6 masked(const net::Address6& address, uint8_t length) {
    return address & net::mask6(length);
  }
  static std::string text_of(const net::Prefix4& prefix) { return net::format_prefix4(prefix); }
  static std::string text_of(const net::Prefix6& prefix) { return net::format_prefix6(prefix); }

  Ids& of_length(uint8_t length) {
    const auto it =
        std::ranges::find_if(lengths_, [&](const auto& entry) { return entry.first <= length; });
    if (it != lengths_.end() && it->first == length) return it->second;
    return lengths_.insert(it, {length, Ids()})->second;
  }

  std::vector<std::pair<uint8_t, Ids>> lengths_;  // longest first
  uint64_t n_prefixes_ = 0;
};

}  // namespace batchplane
