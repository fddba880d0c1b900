// SPDX-License-Identifier: BSD-3-Clause
// fib_test.cc - longest-prefix match against a naive search, under random edits.
#include "modules/route/fib.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"

namespace batchplane {
namespace fib_test {

using net::Prefix4;

// Tries all lengths: slow but obviously right.
class NaiveFib {
 public:
  explicit NaiveFib(uint32_t miss_id) : miss_id_(miss_id) {}
  void set(Prefix4 prefix, uint32_t id) { ids_[prefix] = id; }
  bool erase(Prefix4 prefix) { return ids_.erase(prefix) != 0; }
  [[nodiscard]] uint32_t lookup(uint32_t address) const {
    for (int length = 32; length >= 0; --length) {
      const auto bits = static_cast<uint8_t>(length);
      const auto it = ids_.find({address & net::mask4(bits), bits});
      if (it != ids_.end()) return it->second;
    }
    return miss_id_;
  }
  [[nodiscard]] const std::map<Prefix4, uint32_t>& all() const { return ids_; }

 private:
  std::map<Prefix4, uint32_t> ids_;
  uint32_t miss_id_;
};

// Few distinct high bits, so that prefixes nest deeply.
Prefix4 random_prefix(Rng& rng) {
  const auto length =
      static_cast<uint8_t>(rng.below(20) == 0 ? 9 + rng.below(7) : 16 + rng.below(17));
  const uint32_t address = (10U << 24) | rng.below(8) << 16 | (rng.below(65536) & 0x83c7);
  return {address & net::mask4(length), length};
}

uint32_t random_address(Rng& rng) {
  if (rng.below(10) == 0) return static_cast<uint32_t>(rng.next());
  return (10U << 24) | rng.below(9) << 16 | (rng.below(65536) & 0x87cf);
}

class FibTest : public testing::TestWithParam<uint32_t> {
 protected:
  FibConfig config() const {
    return {.max_prefixes = 4096, .max_tbl8 = 2048, .next_hop_bytes = GetParam(), .miss_id = 999};
  }
};

TEST_P(FibTest, AgreesWithNaiveSearchUnderRandomEdits) {
  Fib fib(config());
  NaiveFib naive(999);
  Rng rng(GetParam());
  for (uint32_t round = 0; round < 40; ++round) {
    for (uint32_t k = 0; k < 60; ++k) {
      const Prefix4 prefix = random_prefix(rng);
      if (rng.below(3) == 0) {
        EXPECT_EQ(fib.erase(prefix), naive.erase(prefix));
      } else {
        const uint32_t id = rng.below(round % 2 == 0 ? 900 : 3);  // neighbours often have equal IDs
        fib.set(prefix, id);
        naive.set(prefix, id);
      }
    }
    std::vector<uint32_t> addresses(5000);
    std::vector<uint64_t> ids(addresses.size());
    for (uint32_t& address : addresses) address = random_address(rng);
    fib.lookup(addresses.data(), ids.data(), static_cast<uint32_t>(ids.size()));
    for (size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(ids[i], naive.lookup(addresses[i])) << net::format_ipv4(addresses[i]);
    }
  }
  EXPECT_GT(naive.all().size(), 100U);
}

TEST_P(FibTest, BulkOfAnySizeGivesWhatSingleLookupsGive) {
  Fib fib(config());
  fib.set({0x0a000000, 8}, 7);
  fib.set({0x0a000100, 24}, 8);
  fib.set({0x0a000180, 25}, 9);
  const uint32_t addresses[] = {0x0a000001, 0x0a000101, 0x0a000181, 0x0b000000, 0xffffffff, 0};
  const uint64_t wanted[] = {7, 8, 9, 999, 999, 999};
  for (uint32_t n = 1; n <= 70; ++n) {
    std::vector<uint32_t> asked(n);
    std::vector<uint64_t> ids(n, 12345);
    for (uint32_t i = 0; i < n; ++i) asked[i] = addresses[i % 6];
    fib.lookup(asked.data(), ids.data(), n);
    for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(ids[i], wanted[i % 6]) << n << " " << i;
  }
}

TEST_P(FibTest, ErasingRestoresTheCoveringPrefix) {
  Fib fib(config());
  fib.set({0x0a000000, 8}, 1);
  fib.set({0x0a010000, 16}, 2);
  fib.set({0x0a010280, 25}, 3);
  const uint32_t address = 0x0a010281;
  uint64_t id = 0;
  const auto at = [&] {
    fib.lookup(&address, &id, 1);
    return id;
  };
  EXPECT_EQ(at(), 3U);
  EXPECT_TRUE(fib.erase({0x0a010000, 16}));
  EXPECT_EQ(at(), 3U);
  EXPECT_TRUE(fib.erase({0x0a010280, 25}));
  EXPECT_EQ(at(), 1U);
  EXPECT_FALSE(fib.erase({0x0a010280, 25}));
  EXPECT_TRUE(fib.erase({0x0a000000, 8}));
  EXPECT_EQ(at(), 999U);
}

TEST_P(FibTest, LongPrefixesWithTheCoveringIdComeAndGo) {
  Fib fib(config());
  fib.set({0x0a000000, 8}, 1);
  const uint32_t address = 0x0a010203;
  for (uint32_t i = 0; i < 5000; ++i) {
    fib.set({0x0a010200, 25}, 1);
    if (i % 3 == 0) fib.set({0x0a010280, 25}, 2);
    fib.erase({0x0a010200, 25});
    fib.erase({0x0a010280, 25});
  }
  uint64_t id = 0;
  fib.lookup(&address, &id, 1);
  EXPECT_EQ(id, 1U);
}

TEST_P(FibTest, FullTableRefusesWithTheRemedyAndKeepsWorking) {
  Fib fib({.max_prefixes = 4, .next_hop_bytes = GetParam(), .miss_id = 999});
  for (uint32_t i = 0; i < 4; ++i) fib.set({0x0a000000 + (i << 8), 24}, i);
  try {
    fib.set({0x0b000000, 24}, 5);
    FAIL() << "a fifth prefix was taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.line().find("11.0.0.0/24"), std::string::npos) << error.line();
    EXPECT_NE(error.line().find("max_prefixes"), std::string::npos) << error.line();
  }
  fib.set({0x0a000000, 24}, 77);  // changing a prefix needs no room
  const uint32_t addresses[] = {0x0a000001, 0x0b000001};
  uint64_t ids[2];
  fib.lookup(addresses, ids, 2);
  EXPECT_EQ(ids[0], 77U);
  EXPECT_EQ(ids[1], 999U);
}

INSTANTIATE_TEST_SUITE_P(EntryBytes, FibTest, testing::Values(2U, 4U));

#if BATCHPLANE_DPDK
TEST(FibMemory, TableTooLargeSaysHowMuchItNeeds) {
  try {
    Fib fib(
        {.max_prefixes = 100'000'000, .max_tbl8 = 20'000'000, .next_hop_bytes = 4, .miss_id = 9});
    FAIL() << "such a table cannot fit";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.line().find("MB"), std::string::npos) << error.line();
  }
}
#endif

}  // namespace fib_test
}  // namespace batchplane
