// SPDX-License-Identifier: BSD-3-Clause
// napt_index_test.cc - the index agrees with std::unordered_map, also when buckets overflow.
#include "modules/nat/napt_index.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "base/rng.h"

namespace batchplane::nat {
namespace napt_index_test {

void compare(uint32_t max_keys, uint32_t n_home_buckets, uint32_t n_steps) {
  Rng rng(max_keys + n_home_buckets);
  NaptIndex index(max_keys, 1);
  std::unordered_map<uint64_t, uint32_t> model;  // hash -> number
  std::vector<uint64_t> keys;
  const auto find = [&](uint64_t hash) {
    return index.find(hash, [&](uint32_t n) {
      const auto it = model.find(hash);
      return it != model.end() && it->second == n;
    });
  };
  for (uint32_t step = 1; step <= n_steps; ++step) {
    if (keys.size() < max_keys && (keys.empty() || rng.below(100) < 55)) {
      uint64_t hash = rng.next();
      if (n_home_buckets != 0) hash = (hash & ~0xffffffffULL) | rng.below(n_home_buckets);
      if (model.contains(hash)) continue;
      ASSERT_EQ(find(hash), NaptIndex::kNone);
      index.insert(hash, step);
      model[hash] = step;
      keys.push_back(hash);
    } else {
      const uint32_t at = rng.below(static_cast<uint32_t>(keys.size()));
      const uint64_t hash = keys[at];
      ASSERT_EQ(find(hash), model[hash]);
      index.erase(hash, model[hash]);
      model.erase(hash);
      keys[at] = keys.back();
      keys.pop_back();
      ASSERT_EQ(find(hash), NaptIndex::kNone);
    }
  }
  for (const auto& [hash, number] : model) ASSERT_EQ(find(hash), number);
}

TEST(NaptIndex, AgreesWithAPlainMap) { compare(5000, 0, 100'000); }
TEST(NaptIndex, AgreesWhenFull) { compare(16, 0, 20'000); }
TEST(NaptIndex, AgreesWhenAllKeysHaveFewHomes) { compare(200, 2, 50'000); }

}  // namespace napt_index_test
}  // namespace batchplane::nat
