// SPDX-License-Identifier: BSD-3-Clause
// flat_table_test.cc - FlatTable against std::map under random edits, for every key width.
#include "base/flat_table.h"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"

namespace batchplane {
namespace {

template <uint32_t kWords>
typename FlatTable<kWords>::Key random_key(Rng& rng, uint32_t n_distinct) {
  typename FlatTable<kWords>::Key key{};
  key[rng.below(kWords)] = rng.below(n_distinct);  // often zero, like the key of empty slots
  return key;
}

template <uint32_t kWords>
void edit_and_compare(uint32_t n_distinct, uint32_t n_edits, uint64_t seed) {
  Rng rng(seed);
  FlatTable<kWords> table;
  std::map<typename FlatTable<kWords>::Key, uint32_t> model;
  for (uint32_t e = 0; e < n_edits; ++e) {
    const auto key = random_key<kWords>(rng, n_distinct);
    if (rng.below(3) != 0) {
      const uint32_t value = rng.below(1000);
      EXPECT_EQ(table.insert_or_assign(key, value), !model.contains(key));
      model[key] = value;
    } else {
      EXPECT_EQ(table.erase(key), model.erase(key) == 1);
    }
    ASSERT_EQ(table.size(), model.size());
    const auto other = random_key<kWords>(rng, n_distinct);
    const auto it = model.find(other);
    ASSERT_EQ(table.find(other), it == model.end() ? FlatTable<kWords>::kMissing : it->second);
  }
  std::vector<typename FlatTable<kWords>::Key> keys;
  for (uint32_t i = 0; i < FlatTable<kWords>::kMaxBulk; ++i) {
    keys.push_back(random_key<kWords>(rng, n_distinct));
  }
  uint32_t values[FlatTable<kWords>::kMaxBulk];
  table.find_bulk(keys.data(), static_cast<uint32_t>(keys.size()), values);
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto it = model.find(keys[i]);
    EXPECT_EQ(values[i], it == model.end() ? FlatTable<kWords>::kMissing : it->second);
  }
  uint32_t n_visited = 0;
  table.for_each([&](const auto& key, uint32_t value) {
    ++n_visited;
    EXPECT_EQ(model.at(key), value);
  });
  EXPECT_EQ(n_visited, model.size());
}

TEST(FlatTable, AgreesWithMapWhileSmall) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    edit_and_compare<1>(30, 400, seed);
    edit_and_compare<2>(30, 400, seed);
    edit_and_compare<4>(30, 400, seed);
    edit_and_compare<8>(30, 400, seed);
  }
}

TEST(FlatTable, AgreesWithMapBeyondTheFirstCache) {
  edit_and_compare<1>(20'000, 60'000, 7);
  edit_and_compare<4>(20'000, 60'000, 8);
}

TEST(FlatTable, HoldsManySequentialKeys) {
  FlatTable<1> table;
  for (uint64_t k = 0; k < 65536; ++k)
    EXPECT_TRUE(table.insert_or_assign({k}, static_cast<uint32_t>(k)));
  for (uint64_t k = 0; k < 65536; ++k) ASSERT_EQ(table.find({k}), k);
  EXPECT_EQ(table.find({65536}), FlatTable<1>::kMissing);
  for (uint64_t k = 0; k < 65536; k += 2) EXPECT_TRUE(table.erase({k}));
  for (uint64_t k = 0; k < 65536; ++k) {
    ASSERT_EQ(table.find({k}), k % 2 == 0 ? FlatTable<1>::kMissing : static_cast<uint32_t>(k));
  }
}

}  // namespace
}  // namespace batchplane
