// SPDX-License-Identifier: BSD-3-Clause
// digest_test.cc - the same specification gives the same bytes: within one process, and in every
// build.
//
// The constants hold for all compilers and optimisation levels (tools/check_determinism.sh). When
// behaviour changes on purpose, replace them with that script's output.
#include <gtest/gtest.h>

#include "sim/digest_test_util.h"

namespace batchplane::sim {
namespace digest_test {

TEST(Determinism, EveryBuildGivesTheSameBytes) {
  constexpr uint64_t kDigests[] = {0x2bc2f189f6594cdf, 0xfc341861eca7356c, 0x56255cdc4f82d41e,
                                   0xfcb09bcf9fa0eaeb, 0x45781681f9829ece, 0x57dd62dc22aaf5cb,
                                   0x9b2788db3791cbcb, 0x640b39ab496109c6, 0x81fe75863c7db244};
  const auto digests = all_digests();
  ASSERT_EQ(digests.size(), std::size(kDigests));
  for (size_t i = 0; i < digests.size(); ++i) {
    EXPECT_EQ(digests[i].second, kDigests[i])
        << digests[i].first << std::hex << " is 0x" << digests[i].second;
  }
}

TEST(Determinism, AnotherSeedGivesOtherBytes) {
  Spec spec = digest_scenarios()[1].second;
  const uint64_t digest = digest_of(spec, "max");
  EXPECT_EQ(digest, digest_of(spec, "max"));
  spec.seed += 1;
  EXPECT_NE(digest, digest_of(spec, "max"));
}

}  // namespace digest_test
}  // namespace batchplane::sim
