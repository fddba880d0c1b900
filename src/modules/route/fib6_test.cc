// SPDX-License-Identifier: BSD-3-Clause
// fib6_test.cc - longest-prefix match of IPv6 against a naive search, under random edits.
#include "modules/route/fib6.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"

namespace batchplane {
namespace fib6_test {

using net::Address6;
using net::Prefix6;

// Tries all lengths: slow but obviously right.
class NaiveFib6 {
 public:
  void set(const Prefix6& prefix, uint32_t id) { ids_[prefix] = id; }
  bool erase(const Prefix6& prefix) { return ids_.erase(prefix) != 0; }
  [[nodiscard]] uint32_t lookup(const Address6& address, uint32_t miss_id) const {
    for (int length = 128; length >= 0; --length) {
      const auto bits = static_cast<uint8_t>(length);
      const auto it = ids_.find({address & net::mask6(bits), bits});
      if (it != ids_.end()) return it->second;
    }
    return miss_id;
  }
  [[nodiscard]] const std::map<Prefix6, uint32_t>& all() const { return ids_; }

 private:
  std::map<Prefix6, uint32_t> ids_;
};

// Few distinct bytes, so that prefixes nest deeply.
Address6 random_address(Rng& rng) {
  uint8_t bytes[16] = {0x20, 0x01, 0x0d};
  for (uint32_t i = 3; i < 16; ++i) {
    static constexpr uint8_t kBytes[] = {0x00, 0x80, 0xff, 0x12};
    bytes[i] = kBytes[rng.below(100) < 70 ? 0 : rng.below(4)];
  }
  return net::load_address6(bytes);
}

Prefix6 random_prefix(Rng& rng) {
  const auto length =
      static_cast<uint8_t>(rng.below(8) == 0 ? 1 + rng.below(31) : 24 + rng.below(105));
  return {random_address(rng) & net::mask6(length), length};
}

std::vector<uint64_t> look_up(const Fib6& fib, const std::vector<Address6>& asked) {
  std::vector<uint8_t> bytes(asked.size() * 16);
  for (size_t i = 0; i < asked.size(); ++i) net::store_address6(&bytes[i * 16], asked[i]);
  std::vector<uint64_t> ids(asked.size(), 12345);
  fib.lookup(reinterpret_cast<const Fib6::Bytes*>(bytes.data()), ids.data(),
             static_cast<uint32_t>(asked.size()));
  return ids;
}

TEST(Fib6, AgreesWithNaiveSearchUnderRandomEdits) {
  const FibConfig config{.max_prefixes = 4096, .next_hop_bytes = 4, .miss_id = 999};
  Fib6 fib(config);
  NaiveFib6 naive;
  Rng rng(3);
  for (uint32_t round = 0; round < 40; ++round) {
    for (uint32_t k = 0; k < 100; ++k) {
      if (!naive.all().empty() && rng.below(3) == 0) {
        auto it = naive.all().lower_bound(random_prefix(rng));
        const Prefix6 prefix = it == naive.all().end() ? naive.all().begin()->first : it->first;
        EXPECT_EQ(fib.erase(prefix), naive.erase(prefix));
      } else {
        const Prefix6 prefix = random_prefix(rng);
        const uint32_t id = rng.below(round % 2 == 0 ? 900 : 3);  // neighbours often have equal IDs
        fib.set(prefix, id);
        naive.set(prefix, id);
      }
    }
    std::vector<Address6> asked(3000);
    for (Address6& address : asked) address = random_address(rng);
    for (const auto& [prefix, id] : naive.all()) {  // the first and last address of each prefix
      const Address6 host = net::mask6(128) ^ net::mask6(prefix.length);
      asked.push_back(prefix.address);
      asked.push_back(prefix.address | host);
    }
    const std::vector<uint64_t> ids = look_up(fib, asked);
    for (size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(ids[i], naive.lookup(asked[i], 999)) << round << " " << net::format_ipv6(asked[i]);
    }
  }
  EXPECT_GT(naive.all().size(), 500U);
}

TEST(Fib6, EditsOverALongTimeDoNotFillIt) {
  Fib6 fib({.max_prefixes = 64, .max_tbl8 = 256, .next_hop_bytes = 4, .miss_id = 99});
  Rng rng(9);
  // A table that leaked one block per edit would be full after the first few.
  for (uint32_t i = 0; i < 120; ++i) {
    std::map<Prefix6, uint32_t> live;
    while (live.size() < 10) live[random_prefix(rng)] = rng.below(3);
    for (const auto& [prefix, id] : live) fib.set(prefix, id);
    for (const auto& [prefix, id] : live) ASSERT_TRUE(fib.erase(prefix));
  }
  EXPECT_EQ(look_up(fib, {random_address(rng)}), std::vector<uint64_t>{99});
}

TEST(Fib6, FullTableRefusesWithTheRemedyAndKeepsWorking) {
  Fib6 fib({.max_prefixes = 4, .next_hop_bytes = 4, .miss_id = 99});
  const auto prefix = [](uint32_t i) {
    return Prefix6{{0x20010db800000000ULL + (i << 16), 0}, 48};
  };
  uint32_t n = 0;
  try {
    for (; n < 100; ++n) fib.set(prefix(n), n);
    FAIL() << "a hundred prefixes were taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.line().find("max_prefixes"), std::string::npos) << error.line();
  }
  ASSERT_GE(n, 4U);
  fib.set(prefix(0), 77);  // changing a prefix needs no room
  const auto ids = look_up(fib, {prefix(0).address, prefix(1).address, prefix(n).address});
  EXPECT_EQ(ids, (std::vector<uint64_t>{77, 1, 99}));
}

#if BATCHPLANE_DPDK
TEST(Fib6, OutOfBlocksRefusesAndLeavesNothingBehind) {
  Fib6 fib({.max_prefixes = 64, .max_tbl8 = 8, .next_hop_bytes = 4, .miss_id = 99});
  const Prefix6 kept{{0x20010db800000000ULL, 0}, 48};
  fib.set(kept, 1);
  const Prefix6 deep{{0x20010db900000000ULL, 1}, 128};
  try {
    fib.set(deep, 2);
    FAIL() << "13 blocks cannot fit";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.line().find("max_long_blocks"), std::string::npos) << error.line();
  }
  EXPECT_EQ(look_up(fib, {kept.address, deep.address}), (std::vector<uint64_t>{1, 99}));
  EXPECT_TRUE(fib.erase(kept));
}
#endif

}  // namespace fib6_test
}  // namespace batchplane
