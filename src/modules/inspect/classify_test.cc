// SPDX-License-Identifier: BSD-3-Clause
// classify_test.cc - weights from good and broken files, and their live replacement. The golden
// cases compare the classes with those of another program.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "base/rng.h"
#include "module_harness.h"
#include "modules/inspect/mlp.h"
#include "modules/inspect/npz_test_util.h"

namespace batchplane {
namespace {

class ClassifyFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("bp_npz_" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove(path_); }
  void write(const std::string& content) const {
    std::ofstream(path_, std::ios::binary) << content;
  }
  [[nodiscard]] std::string refusal(const std::string& content) const {
    write(content);
    return refusal_of([&] { ModuleHarness("classify", {{"weights", path_.string()}}); });
  }

  std::filesystem::path path_;
};

// The network has one input, the first byte of the IP header: 0x45 for version 4 with 5 words.
std::string two_classes(float second) {
  return npz_of({{"w0", npy_of("(1, 2)", {1, second})}, {"b0", npy_of("(2,)", {0, 0})}});
}

TEST_F(ClassifyFile, ChoosesGatesAndIsReplacedLive) {
  write(two_classes(2));
  ModuleHarness classify("classify", {{"weights", path_.string()}, {"mark", true}}, 2);
  const Outcome outcome = classify.run({make_frame({}), make_frame({})});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 1}));
  EXPECT_EQ(outcome.outputs[0].mark, 1U);
  write(two_classes(0.5));
  classify.command("reload");
  EXPECT_EQ(classify.run({make_frame({})}).gates(), std::vector<uint32_t>{0});
  write(npz_of({{"w0", npy_of("(1, 3)", {1, 2, 3})}, {"b0", npy_of("(3,)", {0, 0, 0})}}));
  EXPECT_NE(refusal_of([&] { classify.command("reload"); }).find("more classes"),
            std::string::npos);
  EXPECT_EQ(classify.module().show()["classes"].as_int(), 2);
  EXPECT_EQ(classify.module().show()["pkts_of_class"].as_list()[1].as_int(), 2);
}

TEST_F(ClassifyFile, IsRefusedInALine) {
  const std::string w = npy_of("(1, 2)", {1, 2});
  const std::string b = npy_of("(2,)", {0, 0});
  const auto says = [&](const std::string& content, const std::string& part) {
    const std::string line = refusal(content);
    EXPECT_NE(line.find(part), std::string::npos) << part << ": " << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  };
  says("", "no .npz");
  says("PK", "no .npz");
  says(npz_of({}), "w0 is missing");
  says(npz_of({{"w0", w}}), "b0 is missing");
  says(npz_of({{"w0", w}, {"b0", npy_of("(3,)", {0, 0, 0})}}), "b0 is 3");
  says(npz_of({{"w0", b}, {"b0", b}}), "no matrix");
  says(npz_of({{"w0", w}, {"b0", b}, {"w1", w}, {"b1", b}}), "behind 2 outputs");
  says(npz_of({{"w0", w}, {"b0", b}}, 8), "compressed");
  says(npz_of({{"w0", npy_of("(1, 2)", {1, 2}, "<i4")}, {"b0", b}}), "float32");
  says(npz_of({{"w0", npy_of("(9, 2)", {1, 2})}, {"b0", b}}), "cut off");
  says(npz_of({{"w0", npy_of("(1, 99999999999)", {1, 2})}, {"b0", b}}), "neither");
  says(npz_of({{"w0", npy_of("(1, 2)", {1, std::numeric_limits<float>::quiet_NaN()})}, {"b0", b}}),
       "no number");
  says(npz_of({{"w0", "nothing"}, {"b0", b}}), "no array");
  EXPECT_NE(refusal_of([&] { ModuleHarness("classify", {}); }), "");
  EXPECT_NE(refusal_of([&] { ModuleHarness("classify", {{"random", List{256}}}); }), "");
}

// Random corruption: the file is read, or refused with a one-line error.
TEST_F(ClassifyFile, BrokenFilesAreRefused) {
  Rng rng(4);
  const std::string good = two_classes(2);
  for (uint32_t round = 0; round < 400; ++round) {
    std::string bad = good.substr(
        0, rng.below(8) == 0 ? rng.below(static_cast<uint32_t>(good.size())) : good.size());
    for (uint32_t n = 1 + rng.below(4); n > 0 && !bad.empty(); --n) {
      bad[rng.below(static_cast<uint32_t>(bad.size()))] = static_cast<char>(rng.next());
    }
    write(bad);
    try {
      inspect::Mlp::from_file(path_, "test");
    } catch (const ConfigError&) {
    }
  }
}

// A packet gets the same class alone and among others.
TEST(Classify, BatchesDoNotMatter) {
  const inspect::Mlp mlp = inspect::Mlp::random({100, 33, 7});
  std::vector<float> scratch(mlp.n_scratch_floats());
  Rng rng(8);
  std::vector<std::vector<uint8_t>> texts(37);
  std::vector<inspect::Text> views;
  for (auto& text : texts) {
    text.resize(rng.below(150));
    for (uint8_t& byte : text) byte = static_cast<uint8_t>(rng.next());
    views.push_back({text.data(), static_cast<uint32_t>(text.size())});
  }
  inspect::Choice together[37];
  mlp.classify(views.data(), 37, scratch.data(), together);
  for (uint32_t i = 0; i < 37; ++i) {
    inspect::Choice alone;
    mlp.classify(&views[i], 1, scratch.data(), &alone);
    EXPECT_EQ(alone.chosen, together[i].chosen);
    EXPECT_EQ(alone.output_bits, together[i].output_bits);
  }
}

}  // namespace
}  // namespace batchplane
