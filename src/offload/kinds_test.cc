// SPDX-License-Identifier: BSD-3-Clause
// kinds_test.cc - every module kind that can run on a device treats packets there as on its worker.
#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "module_harness.h"
#include "offload/job.h"

namespace batchplane::offload {
namespace kinds_test {

struct Case {
  std::string kind;
  Dict params;
};

const List kSas{Dict{{"id", 0},
                     {"spi", 4096},
                     {"suite", "aes-128-cbc-sha1"},
                     {"local", "192.0.2.1"},
                     {"remote", "198.18.0.1"}}};

std::vector<Case> cases() {
  const List rules{Dict{{"id", 1}, {"content", "a"}},
                   Dict{{"id", 2}, {"content", "zz"}, {"action", "drop"}}};
  const List own{Dict{{"id", 0}, {"spi", 4096}, {"suite", "aes-128-cbc-sha1"}}};
  return {{"dpi", {{"rules", rules}}},
          {"dpi", {{"rules", rules}, {"engine", "hyperscan"}}},
          {"digest", {{"algorithm", "md5"}}},
          {"digest", {{"algorithm", "sha256"}}},
          {"classify", {{"random", List{64, 16, 4}}}},
          {"esp_encrypt", {{"by", "mark"}, {"test_keys", true}, {"sas", kSas}}},
          {"esp_decrypt", {{"test_keys", true}, {"sas", own}}}};
}

std::vector<Bytes> frames(const std::string& kind, uint64_t seed) {
  Rng rng(seed);
  std::vector<Bytes> all;
  for (uint32_t i = 0; i < 200; ++i) {
    FrameSpec spec;
    spec.len_bytes = 60 + rng.below(400);
    all.push_back(make_frame(spec));
    for (uint32_t at = 42; at < all.back().size(); ++at) {
      all.back()[at] = static_cast<uint8_t>(rng.below(8) == 0 ? 'z' : 'b' + rng.below(20));
    }
    // Truncated, not IP, or with false lengths: drops must agree, too.
    if (rng.below(10) == 0) all.back()[12] = 0x77;
    if (rng.below(10) == 0) all.back()[17] += 7;
  }
  if (kind != "esp_decrypt") return all;
  ModuleHarness encrypt("esp_encrypt", {{"by", "mark"}, {"test_keys", true}, {"sas", kSas}});
  std::vector<Bytes> encrypted = encrypt.run(all).at(0);
  for (Bytes& frame : encrypted) {
    if (rng.below(5) == 0) frame.back() ^= 1;
  }
  return encrypted;
}

// Each packet's gate or drop reason, and its bytes.
using Fates = std::vector<std::pair<std::string, Bytes>>;

Fates on_its_worker(const Case& one, const std::vector<Bytes>& all) {
  ModuleHarness harness(one.kind, one.params, 4);
  Fates fates;
  const Outcome outcome = harness.run(all);
  for (const Output& output : outcome.outputs) {
    fates.emplace_back(std::to_string(output.gate), output.bytes);
  }
  for (const Dropped& drop : outcome.drops) fates.emplace_back(drop.reason, drop.bytes);
  return fates;
}

Fates on_a_device(const Case& one, const std::vector<Bytes>& all) {
  ModuleHarness harness(one.kind, one.params, 4);
  std::vector<Packet*> pkts;
  for (const Bytes& frame : all) pkts.push_back(harness.make_packet(frame));
  const ModuleInfo& info = *find_module_kind(one.kind);
  Environment env;
  Args args(info.params, one.params, "modules.x");
  args.set_env(&env);
  args.set_name("x");
  Runner runner(info, info.make(args));
  if (info.shape == Shape::kSplitter) runner.module().link(4);
  runner.run(harness.ctx(), pkts.data(), static_cast<uint32_t>(pkts.size()));
  Fates fates;
  for (Packet* pkt : pkts) {
    const uint16_t fate = pkt->meta().drop_reason;
    const bool is_dropped = (fate & kDropFate) != 0;
    fates.emplace_back(is_dropped ? drop_reasons()[fate & ~kDropFate].name : std::to_string(fate),
                       Bytes(pkt->data(), pkt->data() + pkt->len_bytes()));
    PacketPool::free_bulk(&pkt, 1);
  }
  return fates;
}

TEST(OffloadedKinds, LeavePacketsAsTheyDoOnTheirWorker) {
  for (const Case& one : cases()) {
    const std::vector<Bytes> all = frames(one.kind, 7);
    ASSERT_GT(all.size(), 50U) << one.kind;
    Fates expected = on_its_worker(one, all);
    Fates found = on_a_device(one, all);
    // Dropped packets are listed last: the two sides report them in different orders.
    std::ranges::sort(expected);
    std::ranges::sort(found);
    EXPECT_EQ(found, expected) << one.kind;
  }
}

TEST(OffloadedKinds, AreAllTried) {
  std::set<std::string> tried;
  for (const Case& one : cases()) tried.insert(one.kind);
  for (const ModuleInfo* info : all_module_kinds()) {
    if (info->kind.starts_with("test_")) continue;
    EXPECT_EQ(info->can_offload, tried.contains(info->kind)) << info->kind;
  }
}

}  // namespace kinds_test
}  // namespace batchplane::offload
