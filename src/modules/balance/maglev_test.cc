// SPDX-License-Identifier: BSD-3-Clause
// maglev_test.cc - shares follow the weights, changes move few slots, and the order of backends has
// no effect.
#include "modules/balance/maglev.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/rng.h"

namespace batchplane {
namespace maglev_test {

constexpr uint32_t kSlots = 65537;

std::vector<MaglevBackend> numbered(uint32_t n) {
  std::vector<MaglevBackend> backends;
  for (uint32_t i = 0; i < n; ++i) backends.push_back({"server-" + std::to_string(i)});
  return backends;
}

// The table as backend names: flows see names, not indices.
std::vector<std::string> names_of(const std::vector<MaglevBackend>& backends,
                                  uint32_t n_slots = kSlots) {
  std::vector<std::string> names;
  for (const uint16_t slot : maglev_slots(backends, n_slots)) names.push_back(backends[slot].name);
  return names;
}

std::map<std::string, uint32_t> counts_of(const std::vector<std::string>& names) {
  std::map<std::string, uint32_t> counts;
  for (const std::string& name : names) ++counts[name];
  return counts;
}

uint32_t moved(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  uint32_t n = 0;
  for (size_t i = 0; i < a.size(); ++i) n += a[i] != b[i] ? 1 : 0;
  return n;
}

TEST(Maglev, EqualWeightsGiveEqualShares) {
  for (const uint32_t n : {1U, 2U, 3U, 10U, 64U, 500U, 1000U}) {
    const auto counts = counts_of(names_of(numbered(n)));
    ASSERT_EQ(counts.size(), n);
    uint32_t least = kSlots;
    uint32_t most = 0;
    for (const auto& [name, count] : counts) {
      least = std::min(least, count);
      most = std::max(most, count);
    }
    // Each backend takes one slot per round: the counts differ by at most one.
    EXPECT_LE(most - least, 1U) << n;
    EXPECT_LE(most / (kSlots / static_cast<double>(n)), 1.02) << n;
  }
}

TEST(Maglev, WeightsAreHonoured) {
  Rng rng(7);
  for (uint32_t round = 0; round < 20; ++round) {
    std::vector<MaglevBackend> backends = numbered(2 + rng.below(40));
    double sum = 0;
    for (MaglevBackend& backend : backends) sum += backend.weight = 1 + rng.below(100);
    const auto counts = counts_of(names_of(backends));
    for (const MaglevBackend& backend : backends) {
      const double fair = kSlots * backend.weight / sum;
      const auto it = counts.find(backend.name);
      const double found = it == counts.end() ? 0 : it->second;
      EXPECT_NEAR(found, fair, 1.5 + fair * 0.001) << "weight " << backend.weight << " of " << sum;
    }
  }
}

// Removal must move the slots of the removed backend. It also moves a few of the others (the paper:
// a few per cent at a hundred slots per backend), which is disruption.
TEST(Maglev, RemovalMovesLittleMoreThanTheShareOfTheRemoved) {
  Rng rng(11);
  for (uint32_t round = 0; round < 12; ++round) {
    const std::vector<MaglevBackend> backends = numbered(3 + rng.below(200));
    const std::vector<std::string> before = names_of(backends);
    const uint32_t gone = rng.below(static_cast<uint32_t>(backends.size()));
    std::vector<MaglevBackend> fewer = backends;
    fewer.erase(fewer.begin() + gone);
    const std::vector<std::string> after = names_of(fewer);
    uint32_t n_own = 0;
    uint32_t n_others = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i] == backends[gone].name) {
        ++n_own;
      } else if (before[i] != after[i]) {
        ++n_others;
      }
    }
    EXPECT_NEAR(n_own, kSlots / static_cast<double>(backends.size()), 1.0);
    EXPECT_LE(n_others, kSlots * 0.01) << backends.size() << " backends";
    // Adding the backend again restores the table.
    fewer.insert(fewer.begin() + rng.below(static_cast<uint32_t>(fewer.size() + 1)),
                 backends[gone]);
    EXPECT_EQ(names_of(fewer), before);
  }
}

TEST(Maglev, AChangeOfWeightMovesAFewTimesTheMin) {
  std::vector<MaglevBackend> backends = numbered(20);
  for (MaglevBackend& backend : backends) backend.weight = 10;
  const std::vector<std::string> before = names_of(backends);
  backends[4].weight = 5;
  const std::vector<std::string> after = names_of(backends);
  const uint32_t least = counts_of(before).at("server-4") - counts_of(after).at("server-4");
  EXPECT_LE(moved(before, after), least + kSlots / 100);
}

TEST(Maglev, TheOrderHasNoInfluence) {
  Rng rng(13);
  for (uint32_t round = 0; round < 10; ++round) {
    std::vector<MaglevBackend> backends = numbered(2 + rng.below(60));
    for (MaglevBackend& backend : backends) backend.weight = 1 + rng.below(8);
    const std::vector<std::string> before = names_of(backends);
    for (size_t i = backends.size(); i > 1; --i) {
      std::swap(backends[i - 1], backends[rng.below(static_cast<uint32_t>(i))]);
    }
    EXPECT_EQ(names_of(backends), before);
  }
}

// The paper's pseudocode for equal weights, with explicit permutations.
std::vector<uint16_t> by_the_paper(const std::vector<std::vector<uint32_t>>& permutation,
                                   uint32_t n_slots) {
  std::vector<uint16_t> entry(n_slots, 0xffff);
  std::vector<uint32_t> next(permutation.size());
  for (uint32_t n = 0;;) {
    for (size_t i = 0; i < permutation.size(); ++i) {
      uint32_t c = permutation[i][next[i]];
      while (entry[c] != 0xffff) c = permutation[i][++next[i]];
      entry[c] = static_cast<uint16_t>(i);
      ++next[i];
      if (++n == n_slots) return entry;
    }
  }
}

TEST(Maglev, FillsTheTableAsThePaperDoes) {
  constexpr uint32_t kFew = 1009;
  // Sorted by name: backends take turns in name order.
  const std::vector<MaglevBackend> backends = {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}};
  std::vector<std::vector<uint32_t>> permutation;
  for (const MaglevBackend& backend : backends) {
    const auto hash = [&](uint64_t seed) {
      uint64_t h = 0xcbf29ce484222325ULL ^ seed;
      for (const char c : backend.name) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
      h = (h ^ h >> 32) * 0xd6e8feb86659fd93ULL;
      return h ^ h >> 32;
    };
    std::vector<uint32_t> order;
    for (uint64_t j = 0; j < kFew; ++j) {
      order.push_back(
          static_cast<uint32_t>((hash(1) % kFew + j * (hash(2) % (kFew - 1) + 1)) % kFew));
    }
    permutation.push_back(order);
  }
  EXPECT_EQ(maglev_slots(backends, kFew), by_the_paper(permutation, kFew));
}

TEST(Maglev, EndsOfTheRange) {
  EXPECT_TRUE(maglev_slots({}, kSlots).empty());
  EXPECT_EQ(maglev_slots({{"only", 1000}}, 3), (std::vector<uint16_t>{0, 0, 0}));
  std::vector<uint16_t> each = maglev_slots({{"a"}, {"b"}, {"c"}}, 3);
  std::ranges::sort(each);
  EXPECT_EQ(each, (std::vector<uint16_t>{0, 1, 2}));
  EXPECT_EQ(counts_of(names_of(numbered(4096))).size(), 4096U);
}

TEST(Maglev, Primes) {
  EXPECT_FALSE(is_prime(0));
  EXPECT_FALSE(is_prime(1));
  EXPECT_TRUE(is_prime(2));
  EXPECT_TRUE(is_prime(65537));
  EXPECT_FALSE(is_prime(65535));
  EXPECT_TRUE(is_prime(1'048'573));
  EXPECT_FALSE(is_prime(1021 * 1021));
}

}  // namespace maglev_test
}  // namespace batchplane
