// SPDX-License-Identifier: BSD-3-Clause
// opencl_lanes_test.cc - packets that several work items share: whatever falls between two of them, compared with
// the CPU on any device at hand.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/rng.h"
#include "modules/inspect/npz_test_util.h"
#include "offload/opencl/any_device_test_util.h"
#include "offload/opencl/beside_test_util.h"

namespace batchplane::offload {
namespace opencl_lanes_test {

using namespace opencl_modules_test;  // NOLINT(google-build-using-namespace)

constexpr uint32_t kMostPkts = 4096;
constexpr uint32_t kLanes = 32;       // as in dpi.cl
constexpr uint32_t kLeastChunk = 32;  // as in dpi.cl

// A module's kernel on a device, given inputs as they are.
struct OnDevice {
  OnDevice(const KernelDevice& device, const std::string& kind, const Dict& params)
      : side(kind, params, 1),
        kernel(device.make_kernel(side.kernel(), kMostPkts, nullptr, "devices.x")) {}
  void expect_same(const std::vector<Bytes>& texts) {
    for (size_t at = 0; at < texts.size(); at += kMostPkts) {
      const size_t n = std::min<size_t>(kMostPkts, texts.size() - at);
      const std::vector<Kernel::Input> inputs(&texts[at], &texts[at] + n);
      ASSERT_NO_FATAL_FAILURE(expect_same_results(*kernel, side.kernel(), 0, inputs));
    }
  }
  Side side;
  std::unique_ptr<DeviceKernel> kernel;
};

Dict rules_of(const std::vector<std::string>& literals, bool has_nocase) {
  List rules;
  for (const std::string& literal : literals) {
    rules.push_back(Dict{{"id", static_cast<int64_t>(rules.size()) + 1},
                         {"content", literal},
                         {"action", "alert"},
                         {"nocase", has_nocase && rules.empty()}});
  }
  return {{"rules", rules}};
}

std::string random_text(Rng& rng, uint32_t n_bytes, const std::string& letters) {
  std::string text(n_bytes, ' ');
  for (char& c : text) c = letters[rng.below(static_cast<uint32_t>(letters.size()))];
  return text;
}

// Texts of `n_bytes` with the literal at each place, and with all but its last byte somewhere before it.
void add_texts(std::vector<Bytes>& texts, Rng& rng, uint32_t n_bytes, const std::string& literal) {
  const auto length = static_cast<uint32_t>(literal.size());
  for (uint32_t at = 0; at + length <= n_bytes; ++at) {
    std::string text = random_text(rng, n_bytes, "abcdeABC");
    if (at >= length) text.replace(rng.below(at - length + 1), length - 1, literal, 0, length - 1);
    text.replace(at, length, literal);
    texts.emplace_back(text.begin(), text.end());
  }
}

class OpenClLanes : public testing::Test {
 protected:
  void SetUp() override {
    device = any_device(why);
    if (device == nullptr) GTEST_SKIP() << why;
  }
  std::string why;
  std::shared_ptr<const KernelDevice> device;
};

TEST_F(OpenClLanes, LiteralsAcrossChunks) {
  Rng rng(41);
  const std::string longer_than_a_chunk = random_text(rng, kLeastChunk + 30, "xyz");
  for (const std::vector<std::string>& literals : {std::vector<std::string>{"needle0123"},
                                                   {"a needle", "eedle in", "zz"},
                                                   {longer_than_a_chunk},
                                                   {"needle0123", longer_than_a_chunk},
                                                   {"z"}}) {
    for (const bool has_nocase : {false, true}) {
      OnDevice dpi(*device, "dpi", rules_of(literals, has_nocase));
      std::vector<Bytes> texts;
      for (const std::string& literal : literals) {
        add_texts(texts, rng, 4 * kLeastChunk + 3, literal);
        add_texts(texts, rng, 4 * static_cast<uint32_t>(longer_than_a_chunk.size()), literal);
      }
      dpi.expect_same(texts);
    }
  }
}

// The longest have longer chunks; in random texts of two letters literals end anywhere.
TEST_F(OpenClLanes, TextsOfAllLengths) {
  Rng rng(43);
  for (const std::vector<std::string>& literals :
       {std::vector<std::string>{}, {"abbabaab"}, {"abbabaabbaababba", "bbbbbbbbbbbb"}}) {
    OnDevice dpi(*device, "dpi", rules_of(literals, false));
    std::vector<Bytes> texts;
    const auto add = [&](uint32_t n_bytes) {
      const std::string text = random_text(rng, n_bytes, n_bytes % 3 == 0 ? "ab" : "abc");
      texts.emplace_back(text.begin(), text.end());
    };
    for (uint32_t n = 0; n <= 5 * kLeastChunk; ++n) add(n);
    for (uint32_t n = 0; n <= 5 * kLanes; ++n) add(kLanes * kLeastChunk - 2 * kLanes + n);
    for (const uint32_t n : {9000U, 16'383U, 16'384U, 65'535U}) add(n);
    dpi.expect_same(texts);
  }
}

// Fewer outputs than a group has work items, more than it computes at once, and as many as there may be; layers that
// leave local memory for fewer texts than a group has, and batches that fill no group, one and more.
TEST_F(OpenClLanes, LayersOfAllWidths) {
  Rng rng(47);
  std::vector<Bytes> texts(33);
  for (const List& widths : {List{5, 3}, List{300, 1000}, List{700, 1300}, List{1800, 5},
                             List{64, 1025, 7, 256, 257, 15, 16, 17, 4},
                             List{8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24},
                             List{4096, 40, 4096, 1}, List{3, 4096}}) {
    OnDevice classify(*device, "classify", {{"random", widths}});
    for (const uint32_t n : {1U, 2U, 7U, 8U, 33U}) {
      texts.resize(n);
      for (Bytes& text : texts) {
        text.resize(rng.below(5000));
        for (uint8_t& byte : text) byte = static_cast<uint8_t>(rng.below(256));
      }
      classify.expect_same(texts);
    }
  }
}

// Of equal outputs the first wins, zeros of both signs are equal, and NaN is never higher. A text of 255 makes
// the inner value infinite, so outputs are that, of both signs, or NaN.
TEST_F(OpenClLanes, OfEqualOutputsTheFirstWins) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("bp_cl_ties_" + std::to_string(::getpid()));
  Rng rng(53);
  const auto write = [&](uint32_t n_outputs, uint32_t n_values) {
    const float all[] = {-0.0F, 0.0F, -1.0F, 1.0F};
    std::vector<float> weights(n_outputs);
    std::vector<float> biases(n_outputs);
    for (float& weight : weights) weight = all[rng.below(n_values)];
    for (float& bias : biases) bias = all[rng.below(n_values)];
    std::ofstream(path, std::ios::binary)
        << npz_of({{"w0", npy_of(npy_shape(1, 1), {3e38F})},
                   {"b0", npy_of(npy_shape(1), {3e38F})},
                   {"w1", npy_of(npy_shape(1, n_outputs), weights)},
                   {"b1", npy_of(npy_shape(n_outputs), biases)}});
  };
  write(700, 4);
  OnDevice classify(*device, "classify", {{"weights", path}});
  for (uint32_t round = 0; round < 60; ++round) {
    classify.expect_same({Bytes{}, Bytes{255}});
    write(1 + rng.below(round % 2 == 0 ? 8 : 700), 2 + rng.below(3));
    classify.side.runner.module().command("reload", Dict{});
    classify.kernel->renew_table(classify.side.kernel(), "");
  }
  std::filesystem::remove(path);
}

}  // namespace opencl_lanes_test
}  // namespace batchplane::offload
