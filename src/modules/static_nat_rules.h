// SPDX-License-Identifier: BSD-3-Clause
// static_nat_rules.h - pairs of prefixes of one length: as users write them, and as packets find
// them.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "base/net.h"
#include "base/value.h"

namespace batchplane::nat {

inline constexpr uint32_t kMaxPairs = 16384;

enum class Direction : uint8_t { kSource, kDestination, kBoth };

struct StaticPair {
  net::Prefix4 inside;
  net::Prefix4 outside;
  Direction direction = Direction::kSource;
  [[nodiscard]] bool is_for_source() const { return direction != Direction::kDestination; }
  [[nodiscard]] bool is_for_destination() const { return direction != Direction::kSource; }
  bool operator==(const StaticPair&) const = default;
};

// Prefixes that do not overlap, and what to flip in an address that lies in one. All words as they
// lie in a packet, but for `first`, by which they are sorted.
class FlipTable {
 public:
  // `from` prefixes in ascending order.
  void add(const net::Prefix4& from, const net::Prefix4& to) {
    rules_.push_back({.first = from.address,
                      .value = net::be32(from.address),
                      .mask = net::be32(net::mask4(from.length)),
                      .flip = net::be32(from.address ^ to.address)});
  }
  [[nodiscard]] bool is_empty() const { return rules_.empty(); }

  // The bits that change in `address_raw`; 0 when no pair has it.
  [[nodiscard]] uint32_t flip_of(uint32_t address_raw) const {
    const Rule* const rules = rules_.data();
    const size_t n = rules_.size();
    if (n == 1) [[likely]]
      return flip_of(rules[0], address_raw);
    if (n <= kFew) {
      uint32_t flip = 0;
      for (size_t i = 0; i < n; ++i) flip |= flip_of(rules[i], address_raw);
      return flip;
    }
    const uint32_t address = net::be32(address_raw);
    size_t at = 0;
    for (size_t step = std::bit_floor(n); step != 0; step /= 2) {
      at = at + step < n && rules[at + step].first <= address ? at + step : at;
    }
    return flip_of(rules[at], address_raw);
  }

 private:
  struct Rule {
    uint32_t first = 0;
    uint32_t value = 0;
    uint32_t mask = 0;
    uint32_t flip = 0;
  };
  static constexpr size_t kFew = 6;

  static uint32_t flip_of(const Rule& rule, uint32_t address_raw) {
    return ((address_raw ^ rule.value) & rule.mask) == 0 ? rule.flip : 0;
  }

  std::vector<Rule> rules_;
};

// What packets are looked up in. Read-only once built.
struct StaticRules {
  explicit StaticRules(const std::vector<StaticPair>& pairs);
  FlipTable source;       // inside -> outside
  FlipTable destination;  // outside -> inside
};

// All of these throw ConfigError, and change nothing then.
[[nodiscard]] std::vector<StaticPair> parse_pairs(const List& items, Direction otherwise,
                                                  const std::string& where);
// Refuses prefixes that would translate one address in two ways.
void check_pairs(const std::vector<StaticPair>& pairs, const std::string& where);
[[nodiscard]] Direction parse_direction(const std::string& name);
[[nodiscard]] Dict format_pair(const StaticPair& pair);

}  // namespace batchplane::nat
