// SPDX-License-Identifier: BSD-3-Clause
// session_index_test.cc - the index of tunnels and users against std::map, single and bulk lookups.
#include "modules/session/session_index.h"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "modules/session/session_rules.h"

namespace batchplane::session {
namespace session_index_test {

template <class Value>
void agrees_with_a_map(uint32_t n_keys, Value (*make)(uint32_t)) {
  SessionIndex<Value> index;
  std::map<uint32_t, uint32_t> model;
  Rng rng(n_keys);
  for (uint32_t step = 0; step < 60'000; ++step) {
    const uint32_t key = 1 + rng.below(n_keys);
    if (rng.below(5) < 3) {
      const uint32_t mark = rng.below(1U << 30);
      index.insert_or_assign(key, make(mark));
      model[key] = mark;
    } else {
      index.erase(key);
      model.erase(key);
    }
    const uint32_t asked = rng.below(n_keys + 2);
    const auto known = model.find(asked);
    ASSERT_EQ(index.find(asked).mark, known == model.end() ? kNone : known->second) << asked;
  }
  uint32_t keys[256];
  Value values[256];
  for (uint32_t first = 0; first <= n_keys; first += 256) {
    for (uint32_t i = 0; i < 256; ++i) keys[i] = first + i;
    index.find_bulk(keys, 256, values);
    for (uint32_t i = 0; i < 256; ++i) {
      const auto known = model.find(keys[i]);
      ASSERT_EQ(values[i].mark, known == model.end() ? kNone : known->second) << keys[i];
    }
  }
}

TEST(SessionIndex, AgreesWithAMap) {
  for (const uint32_t n_keys : {40U, 700U, 50'000U}) {
    agrees_with_a_map<UserEntry>(n_keys, [](uint32_t mark) { return UserEntry{mark}; });
    agrees_with_a_map<TunnelEntry>(n_keys, [](uint32_t mark) { return TunnelEntry{mark, ~mark}; });
  }
}

TEST(SessionIndex, KeepsWhatBelongsToAKey) {
  SessionIndex<TunnelEntry> index;
  for (uint32_t key = 1; key <= 5000; ++key) index.insert_or_assign(key, {key, key * 3});
  for (uint32_t key = 1; key <= 5000; key += 2) index.erase(key);
  for (uint32_t key = 2; key <= 5000; key += 2) ASSERT_EQ(index.find(key).ue_raw, key * 3);
  // Erasing a missing key, or the same key twice, does nothing.
  index.erase(1);
  index.erase(9999);
  EXPECT_EQ(index.find(0).mark, kNone);
  EXPECT_EQ(index.find(2).mark, 2U);
}

}  // namespace session_index_test
}  // namespace batchplane::session
