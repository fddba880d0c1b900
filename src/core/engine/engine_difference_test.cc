// SPDX-License-Identifier: BSD-3-Clause
// engine_difference_test.cc - what an apply would change, reported per module.
#include <gtest/gtest.h>

#include "engine_rig.h"

namespace batchplane {
namespace engine_difference_test {

// in -> front -> q -> back -> out, cut at the queue: the first half on `front`, the other on
// `back`.
PipelineSpec cut(const std::string& front, const std::string& back) {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}};
  spec.modules = {{"in", "source", {}, 0, 0, front},
                  {"front", "counter", {}},
                  {"q", "queue", {}, 0, 0, back},
                  {"back", "counter", {}},
                  {"out", "sink", {}}};
  spec.edges = {
      {"in", "0", "front"}, {"front", "0", "q"}, {"q", "0", "back"}, {"back", "0", "out"}};
  return spec;
}

std::vector<std::string> moves_of(const Difference& difference) {
  std::vector<std::string> told;
  for (const Difference::Move& move : difference.moved) {
    told.push_back(move.module + " " + move.from + ">" + move.to);
  }
  return told;
}

using Names = std::vector<std::string>;

TEST(Difference, ModulesOnAnotherWorkerHaveMovedAndAreNotKept) {
  EngineRig rig(cut("w0", "w1"));
  const Difference same = rig.engine().difference(*rig.build(cut("w0", "w1")));
  EXPECT_EQ(same.kept, (Names{"in", "front", "q", "back", "out"}));
  EXPECT_TRUE(same.moved.empty());
  const Difference swapped = rig.engine().difference(*rig.build(cut("w1", "w0")));
  EXPECT_EQ(moves_of(swapped),
            (Names{"in w0>w1", "front w0>w1", "q w0>w1", "back w1>w0", "out w1>w0"}));
  EXPECT_TRUE(swapped.kept.empty());
  const Difference joined = rig.engine().difference(*rig.build(cut("w0", "w0")));
  EXPECT_EQ(moves_of(joined), (Names{"q w1>w0", "back w1>w0", "out w1>w0"}))
      << "of a queue, who polls it";
  EXPECT_EQ(joined.kept, (Names{"in", "front"}));
}

TEST(Difference, BuffersAreComparedWithWhatRuns) {
  EngineRig rig(cut("w0", "w1"));
  PipelineSpec given = cut("w0", "w1");
  rig.engine().set_buffers({{"front", 8}}, {});
  EXPECT_EQ(rig.engine().difference(*rig.build(given)).changed, Names{"front"});
  given.modules[1].trigger_pkts = 8;
  EXPECT_TRUE(rig.engine().difference(*rig.build(given)).changed.empty());
  given.modules[3].kind = "null";
  const Difference other = rig.engine().difference(*rig.build(given));
  EXPECT_EQ(other.added, Names{"back"});
  EXPECT_EQ(other.removed, Names{"back"});
}

}  // namespace engine_difference_test
}  // namespace batchplane
