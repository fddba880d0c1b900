// SPDX-License-Identifier: BSD-3-Clause
// static_nat_rules.h - pairs of prefixes of equal length: their parameters and the lookup tables.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "base/net.h"
#include "base/value.h"
#include "modules/nat/nat_rewrite.h"

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

// How a pair changes an address: the bits to flip, and the change of a checksum over it. Host bits
// are kept, so both are the same for all addresses of a prefix. Zero: no change.
struct Change {
  uint32_t flip = 0;
  uint32_t growth = 0;  // folded
};

// One direction of a pair. All in network order, except `first`.
struct ChangeRule {
  uint32_t first = 0;
  uint32_t value = 0;
  uint32_t mask = 0;
  Change change;

  [[nodiscard]] Change of(uint32_t address_raw) const {
    const uint32_t all = ((address_raw ^ value) & mask) == 0 ? ~0U : 0;
    return {change.flip & all, change.growth & all};
  }
};

// Non-overlapping prefixes.
class ChangeTable {
 public:
  // Call with `from` prefixes in ascending order.
  void add(const net::Prefix4& from, const net::Prefix4& to) {
    const uint32_t before = net::be32(from.address);
    const uint32_t after = net::be32(to.address);
    rules_.push_back({.first = from.address,
                      .value = before,
                      .mask = net::be32(net::mask4(from.length)),
                      .change = {before ^ after, fold32(growth32(before, after))}});
  }
  [[nodiscard]] size_t size() const { return rules_.size(); }
  [[nodiscard]] const ChangeRule& front() const { return rules_.front(); }

  [[nodiscard]] Change of(uint32_t address_raw) const {
    const ChangeRule* const rules = rules_.data();
    const size_t n = rules_.size();
    if (n <= kFew) {
      Change sum;
      for (size_t i = 0; i < n; ++i) {
        const Change change = rules[i].of(address_raw);
        sum.flip |= change.flip;
        sum.growth |= change.growth;
      }
      return sum;
    }
    const uint32_t address = net::be32(address_raw);
    size_t at = 0;
    for (size_t step = std::bit_floor(n); step != 0; step /= 2) {
      const size_t next = at + step;
      const size_t probe = next < n ? next : at;
      at = rules[probe].first <= address ? probe : at;
    }
    return rules[at].of(address_raw);
  }

 private:
  static constexpr size_t kFew = 6;

  std::vector<ChangeRule> rules_;
};

// The lookup tables of packets. Read-only once built. The usual single pair is in the first cache
// line: with a NAT per next hop, each pointer saved is a cache miss saved.
struct alignas(64) StaticRules {
  explicit StaticRules(const std::vector<StaticPair>& pairs);
  uint32_t n_source = 0;
  uint32_t n_destination = 0;
  ChangeRule only;          // the only rule, if both tables together have one
  ChangeTable source;       // inside -> outside
  ChangeTable destination;  // outside -> inside
};

// All of these throw ConfigError and change nothing then.
[[nodiscard]] std::vector<StaticPair> parse_pairs(const List& items, Direction otherwise,
                                                  const std::string& where);
// Refuses prefixes that would translate an address in two ways.
void check_pairs(const std::vector<StaticPair>& pairs, const std::string& where);
[[nodiscard]] Direction parse_direction(const std::string& name);
[[nodiscard]] Dict format_pair(const StaticPair& pair);

}  // namespace batchplane::nat
