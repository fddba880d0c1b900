// SPDX-License-Identifier: BSD-3-Clause
// prefix_map_test.cc - both IP versions against a naive search, under random edits; and a full map.
#include "modules/route/prefix_map.h"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"

namespace batchplane {
namespace prefix_map_test {

constexpr uint32_t kMiss = 999;
const FibConfig kConfig{.max_prefixes = 4096, .miss_id = kMiss};

uint32_t mask_of(uint32_t /*address*/, uint32_t length) { return net::mask4(length); }
net::Address6 mask_of(const net::Address6& /*address*/, uint32_t length) {
  return net::mask6(length);
}
// Few distinct bits, so that prefixes nest deeply.
void draw(Rng& rng, uint32_t& address) { address = 10U << 24 | (rng.below(65536) & 0x83c7); }
void draw(Rng& rng, net::Address6& address) {
  address = {0x20010db800000000ULL | rng.below(4), uint64_t{rng.below(4)} << 62 | rng.below(4)};
}

template <class P>
class PrefixMapTest : public testing::Test {
 protected:
  static constexpr uint8_t kBits = sizeof(typename PrefixMap<P>::Address) * 8;
};
using Versions = testing::Types<net::Prefix4, net::Prefix6>;
TYPED_TEST_SUITE(PrefixMapTest, Versions);

TYPED_TEST(PrefixMapTest, AgreesWithNaiveSearchUnderRandomEdits) {
  Rng rng(7);
  PrefixMap<TypeParam> map;
  std::map<TypeParam, uint32_t> naive;
  for (uint32_t step = 0; step < 3000; ++step) {
    TypeParam prefix;
    draw(rng, prefix.address);
    prefix.length = static_cast<uint8_t>(rng.below(this->kBits + 1));
    prefix.address = prefix.address & mask_of(prefix.address, prefix.length);
    if (rng.below(3) == 0) {
      EXPECT_EQ(map.erase(prefix), naive.erase(prefix) != 0);
    } else {
      map.set(kConfig, prefix, step);
      naive[prefix] = step;
    }
    auto address = prefix.address;
    draw(rng, address);
    uint32_t wanted = kMiss;
    for (const auto& [known, id] : naive) {
      // In ascending order, with longer prefixes of the same address last: also for nested
      // prefixes.
      if ((address & mask_of(address, known.length)) == known.address) wanted = id;
    }
    ASSERT_EQ(map.find(address, kMiss), wanted) << step;
  }
}

TYPED_TEST(PrefixMapTest, AFullMapRefusesWithTheRemedyAndKeepsWorking) {
  PrefixMap<TypeParam> map;
  const FibConfig config{.max_prefixes = 2, .miss_id = kMiss};
  map.set(config, {{}, 0}, 1);
  map.set(config, {{}, 8}, 2);
  map.set(config, {{}, 8}, 3);
  try {
    map.set(config, {{}, 9}, 4);
    FAIL() << "there is room for two";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.line().find("max_prefixes"), std::string::npos) << error.line();
  }
  EXPECT_EQ(map.find({}, kMiss), 3U);
  EXPECT_TRUE(map.erase({{}, 8}));
  EXPECT_FALSE(map.erase({{}, 8}));
  map.set(config, {{}, 9}, 4);
  EXPECT_EQ(map.find({}, kMiss), 4U);
}

}  // namespace prefix_map_test
}  // namespace batchplane
