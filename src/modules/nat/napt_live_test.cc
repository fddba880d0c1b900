// SPDX-License-Identifier: BSD-3-Clause
// napt_live_test.cc - listing, counting, editing and flushing while traffic flows.
#include <atomic>
#include <thread>

#include "base/error.h"
#include "base/rng.h"
#include "napt_test_rig.h"

namespace batchplane {
namespace napt_live_test {

using namespace nattest;  // NOLINT: helpers of these tests

// Each listed row belongs to one connection: its ends must never be a mix of two.
void expect_whole(const Value& connection) {
  const std::string inside = connection["inside"].as_string();
  const std::string remote = connection["remote"].as_string();
  // The worker sends from 10.0.0.N to 8.8.8.N.
  EXPECT_EQ(inside.substr(7, inside.find(':') - 7), remote.substr(6, remote.find(':') - 6))
      << inside << " to " << remote;
}

TEST(NaptLive, ListsAreWholeWhileConnectionsComeAndGo) {
  NaptRig rig(Dict{{"max_connections", 64},
                   {"when_full", "evict_transitory"},
                   {"external", List{"203.0.113.0/30"}}});
  std::atomic<bool> is_over{false};
  std::atomic<uint64_t> n_rounds{0};
  std::thread worker([&] {
    Rng rng(1);
    for (uint64_t round = 0; !is_over.load(); ++round) {
      std::vector<Bytes> frames;
      for (uint32_t i = 0; i < 16; ++i) {
        const uint32_t n = 1 + rng.below(200);
        const Ep from{ip4(10, 0, 0, n), static_cast<uint16_t>(1024 + rng.below(100))};
        frames.push_back(udp(from, {ip4(8, 8, 8, n), 53}));
      }
      rig.harness().set_now_ns(200 * kSecond + round * 10'000'000);
      (void)rig.harness().run(frames);
      (void)rig.harness().housekeep(10'000);
      n_rounds.fetch_add(1);
    }
  });
  Module& module = rig.harness().module();
  uint64_t n_listed = 0;
  for (uint32_t look = 1; look < 500 || n_rounds.load() < 1000; ++look) {
    const Value all = module.command("list", Dict{{"limit", 1000}});
    for (const Value& connection : all["connections"].as_list()) expect_whole(connection);
    n_listed += all["connections"].as_list().size();
    (void)module.show();
    try {
      (void)module.command(look % 2 == 0 ? "add" : "delete", Dict{{"external", "198.51.100.7"}});
      if (look % 50 == 0) (void)module.command("flush", Dict{});
    } catch (const ConfigError&) {
      // It is there already, or already deleted.
    }
  }
  is_over = true;
  worker.join();
  EXPECT_GT(n_listed, 0U);
  EXPECT_EQ(rig.harness().leaked_pkts(), 0U);
}

}  // namespace napt_live_test
}  // namespace batchplane
