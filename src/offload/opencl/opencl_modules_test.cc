// SPDX-License-Identifier: BSD-3-Clause
// opencl_modules_test.cc - modules with a table on any device at hand, compared with the CPU.
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <fstream>

#include "base/rng.h"
#include "module_harness.h"
#include "modules/inspect/npz_test_util.h"
#include "offload/kernel_lane.h"
#include "offload/opencl/any_device_test_util.h"
#include "offload/opencl/beside_test_util.h"

namespace batchplane::offload {
namespace opencl_modules_test {

// Payloads of few letters, so that patterns match often; truncated anywhere, or pure noise.
std::vector<Bytes> random_frames(Rng& rng, uint32_t n, uint32_t longest) {
  std::vector<Bytes> frames(n);
  for (Bytes& frame : frames) {
    const uint32_t shape = rng.below(16);
    if (shape == 0) {
      frame.resize(rng.below(80));
      for (uint8_t& byte : frame) byte = static_cast<uint8_t>(rng.below(256));
      continue;
    }
    FrameSpec spec;
    spec.proto = rng.below(2) == 0 ? net::kProtoUdp : net::kProtoTcp;
    spec.len_bytes = 54 + rng.below(longest - 53);
    spec.options_bytes = shape == 1 ? 4 : 0;
    frame = make_frame(spec);
    if (spec.proto == net::kProtoTcp && spec.options_bytes == 0) frame[34 + 12] = net::Tcp::kPlain;
    for (uint32_t i = 54; i < spec.len_bytes; ++i)
      frame[i] = static_cast<uint8_t>("abcdeABC"[rng.below(8)]);
    if (shape == 2) frame.resize(rng.below(spec.len_bytes + 1));
  }
  return frames;
}

Dict rule(int64_t id, const Value& content, const std::string& action, Dict more = {}) {
  more["id"] = id;
  more["content"] = content;
  more["action"] = action;
  return more;
}
Dict dpi_rules() {
  return {{"rules", List{rule(1, "abcde", "alert"), rule(2, List{"ccc", "|41|bc"}, "drop"),
                         rule(3, "eeeee", "mark", {{"mark", 7}}),
                         rule(4, "BadCab", "alert", {{"nocase", true}}), rule(5, "|00 ff|", "drop"),
                         rule(6, "dada", "drop", {{"proto", "tcp"}})}}};
}

void compare(const std::string& kind, const Dict& params, uint32_t longest) {
  std::string why;
  const auto device = any_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  Rng rng(23);
  Beside beside(device, kind, params, 600);
  for (const uint32_t n : {1U, 2U, 63U, 64U, 65U, 257U, 600U})
    beside.expect_same(random_frames(rng, n, longest));
  beside.expect_same(std::vector<Bytes>(70));  // all empty
}

TEST(OpenClModules, DpiFindsWhatTheProcessorFinds) { compare("dpi", dpi_rules(), 700); }

TEST(OpenClModules, DpiOfWholeFrames) {
  Dict params = dpi_rules();
  params["scan"] = "frame";
  compare("dpi", params, 1514);
}

TEST(OpenClModules, DpiWithoutRules) { compare("dpi", {}, 300); }

TEST(OpenClModules, ClassifyChoosesWhatTheProcessorChooses) {
  for (const List& widths : {List{256, 128, 8}, List{1, 2}, List{37, 33, 19, 5}, List{100, 1},
                             List{1500, 17, 8}, List{9, 300, 2, 40, 3}}) {
    for (const char* const scan : {"frame", "payload"})
      compare("classify", {{"random", widths}, {"mark", true}, {"scan", scan}}, 1514);
  }
}

TEST(OpenClModules, TheLargestBatch) {
  std::string why;
  const auto device = any_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  Rng rng(31);
  const std::vector<Bytes> frames = random_frames(rng, kMaxJobPkts, 200);
  Beside(device, "dpi", dpi_rules(), kMaxJobPkts).expect_same(frames);
  Beside(device, "classify", {{"random", List{64, 32, 8}}}, kMaxJobPkts).expect_same(frames);
}

// Sums beyond a float's range, of both signs, and NaN.
TEST(OpenClModules, ClassifyWithWeightsBeyondAllBounds) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("bp_cl_npz_" + std::to_string(::getpid()));
  Rng rng(5);
  const auto write = [&](uint32_t n_inputs, uint32_t n_outputs) {
    const float all[] = {3e38F, -3e38F, 1e-38F, -1e-38F, 1e-20F, 0.0F, -0.0F, 1.0F, -7.5F};
    const auto values = [&](uint32_t n) {
      std::vector<float> drawn(n);
      for (float& value : drawn) value = all[rng.below(std::size(all))];
      return drawn;
    };
    std::ofstream(path, std::ios::binary)
        << npz_of({{"w0", npy_of(npy_shape(n_inputs, 20), values(n_inputs * 20))},
                   {"b0", npy_of(npy_shape(20), values(20))},
                   {"w1", npy_of(npy_shape(20, n_outputs), values(20 * n_outputs))},
                   {"b1", npy_of(npy_shape(n_outputs), values(n_outputs))}});
  };
  write(40, 6);
  std::string why;
  const auto device = any_device(why);
  if (device == nullptr) {
    std::filesystem::remove(path);
    GTEST_SKIP() << why;
  }
  Beside beside(device, "classify", {{"weights", path}, {"mark", true}}, 64);
  for (uint32_t round = 0; round < 40; ++round) {
    beside.expect_same(random_frames(rng, 64, 120));
    write(1 + rng.below(60), 1 + rng.below(6));
    beside.command("reload", Dict{});
  }
  std::filesystem::remove(path);
}

TEST(OpenClModules, EditedRulesGoToTheDevice) {
  std::string why;
  const auto device = any_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  Rng rng(7);
  Beside beside(device, "dpi", dpi_rules(), 128);
  for (int64_t id = 10; id < 20; ++id) {
    beside.command("add", rule(id, std::string(1 + id % 3, static_cast<char>('a' + id % 5)) + "B",
                               id % 2 == 0 ? "drop" : "mark", {{"mark", id}}));
    beside.expect_same(random_frames(rng, 128, 90));
  }
}

// Arbitrary device results for packets that are not checked.
TEST(OpenClModules, AnyResultsAreSurvived) {
  Rng rng(3);
  for (const bool is_dpi : {true, false}) {
    Side side(is_dpi ? "dpi" : "classify", is_dpi ? dpi_rules() : Dict{{"random", List{64, 32, 8}}},
              exec::kMaxBatchPkts);
    for (uint32_t round = 0; round < 50; ++round) {
      side.take(random_frames(rng, exec::kMaxBatchPkts, 100));
      std::vector<uint32_t> results(2 * exec::kMaxBatchPkts);
      for (uint32_t& word : results) word = static_cast<uint32_t>(rng.next()) >> rng.below(32);
      side.runner.apply(side.kernel().table(), *side.ctx, side.pkts.data(), exec::kMaxBatchPkts,
                        reinterpret_cast<const uint8_t*>(results.data()));
      for (const auto& [fate, mark] : side.fates())
        ASSERT_TRUE((fate & kDropFate) != 0 || fate < kGates) << fate;
    }
  }
}

// A batch is sent with the rules of that moment; its outcome follows the rules of now.
TEST(OpenClModules, ABatchThatAnEditOvertakes) {
  std::string why;
  const auto device = any_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  constexpr uint32_t kPkts = 100;
  Side here("dpi", dpi_rules(), kPkts);
  Side there("dpi", dpi_rules(), kPkts);
  KernelLane lane(*device, there.runner, kPkts, 1, nullptr, "devices.x");
  SpscRing<LaneEntry> ring(4);
  Job job(kPkts, &there.runner);
  Rng rng(9);
  for (uint64_t number = 0; number < 6; ++number) {
    const std::vector<Bytes> frames = random_frames(rng, kPkts, 300);
    here.take(frames);
    there.take(frames);
    std::ranges::copy(there.pkts, job.pkts.get());
    job.n_pkts = kPkts;
    job.begin(number);
    const LaneEntry entry{&job, number, &there.runner};
    ring.enqueue(&entry, 1);
    ASSERT_TRUE(lane.serve(ring, *there.ctx, 1));
    if (number % 2 == 0) {
      const Dict edit{{"rules", List{rule(1, number % 4 == 0 ? "ab" : "cd", "drop")}}};
      here.runner.module().command("replace", edit);
      there.runner.module().command("replace", edit);
    } else {
      lane.renew_table();
    }
    while (job.state() != Job::State::kDone && lane.fault().what == nullptr)
      lane.serve(ring, *there.ctx, 2);
    ASSERT_EQ(lane.fault().what, nullptr) << lane.fault().what;
    here.run();
    EXPECT_EQ(here.fates(), there.fates());
  }
}

// A packet longer than the device's room: nothing is left for the device.
TEST(OpenClModules, ABatchOfNothing) {
  std::string why;
  const auto device = any_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  Side side("dpi", dpi_rules(), 1);
  const auto made = device->make_kernel(side.kernel(), 1, nullptr, "devices.x");
  DeviceKernel& on_device = *made;
  on_device.clear(0);
  EXPECT_FALSE(on_device.add(0, Bytes(DeviceKernel::kMeanBytes + 1)));
  EXPECT_TRUE(on_device.launch(0));
  EXPECT_EQ(on_device.poll(0), DeviceKernel::State::kDone);
}

TEST(OpenClModules, HyperscanStaysHere) {
  Side side("dpi", {{"engine", "hyperscan"}}, 1);
  const std::string line = refusal_of([&] { side.kernel(); });
  EXPECT_NE(line.find("hyperscan runs on processors alone"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

}  // namespace opencl_modules_test
}  // namespace batchplane::offload
