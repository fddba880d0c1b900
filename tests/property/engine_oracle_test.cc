// SPDX-License-Identifier: BSD-3-Clause
// engine_oracle_test.cc - the executor against a slow oracle on random graphs, batches, edits and
// times.
//
// BP_SEED=n replays one seed, BP_SEEDS=n sets how many are tried.
#include "engine_oracle.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace batchplane::property {
namespace {

// Entry times are multiples of this and all different, limits have the node's rank as the rest: no
// two deadlines are equal, so "earliest" says which.
constexpr uint64_t kTickNs = 4096;
constexpr uint32_t kFlows = 40;

uint64_t random_limit(Rng& rng, uint32_t node) {
  static constexpr uint64_t kTicks[] = {1, 8, 60, 400, 100'000};
  return kTicks[rng.below(5)] * kTickNs + node;
}

uint32_t random_trigger(Rng& rng, uint32_t batch_pkts) {
  switch (rng.below(5)) {
    case 0:
    case 1:
      return 0;
    case 2:
      return batch_pkts;
    default:
      return 1 + rng.below(batch_pkts);
  }
}

NodePlan random_node(Rng& rng, uint32_t i, uint32_t n, uint32_t batch_pkts) {
  NodePlan node;
  const uint32_t left = n - 1 - i;  // nodes behind this one
  const uint32_t kind = left == 0 || (i > 0 && rng.below(8) == 0) ? 2 : rng.below(2);
  node.role = static_cast<Role>(kind);
  static constexpr uint32_t kGates[] = {2, 3, 4, 5, 16, 64, 65, 100};
  uint32_t n_gates = 0;
  if (node.role == Role::kInPlace) n_gates = 1;
  if (node.role == Role::kSplitter) n_gates = kGates[rng.below(8)];
  for (uint32_t g = 0; g < n_gates; ++g) {
    node.targets.push_back(i + 1 + (rng.below(2) == 0 ? 0 : rng.below(left)));
  }
  if (rng.below(3) == 0) node.drop_one_in = 2 + rng.below(20);
  if (left != 0 && rng.below(3) == 0) node.drop_target = static_cast<int>(i + 1 + rng.below(left));
  if (node.role != Role::kTerminal && rng.below(5) == 0) {
    node.keep_one_in = 2 + rng.below(4);
    node.emit_at = 1 + rng.below(2 * batch_pkts);
  }
  node.trigger_pkts = random_trigger(rng, batch_pkts);
  node.release_at_pkts = node.trigger_pkts == 0 ? 0 : 1 + rng.below(node.trigger_pkts);
  node.age_limit_ns = random_limit(rng, i);
  return node;
}

Plan random_plan(uint64_t seed) {
  Rng rng(seed);
  static constexpr uint32_t kBatches[] = {1, 2, 5, 8, 32, 32, 64, 256};
  Plan plan{kBatches[rng.below(8)], seed, {}};
  const uint32_t n = 2 + rng.below(14);
  for (uint32_t i = 0; i < n; ++i) plan.nodes.push_back(random_node(rng, i, n, plan.batch_pkts));
  return plan;
}

// Both sides, and what has gone in.
class Duel {
 public:
  explicit Duel(uint64_t seed)
      : rng_(seed ^ 0xd0e1), plan_(random_plan(seed)), world_(plan_), oracle_(plan_) {
    is_idle_hold_ = rng_.below(2) == 0;
  }

  void step() {
    if (rng_.below(40) == 0) is_idle_hold_ = !is_idle_hold_;
    edit();
    pass_time();
    world_.begin_loop();
    oracle_.begin_loop();
    expect_nothing_stranded();
    if (rng_.below(6) == 0) tick();
    if (rng_.below(3) != 0) {
      put_in_batch();
    } else if (!is_idle_hold_) {
      EXPECT_EQ(world_.executor().release_oldest(), oracle_.release_oldest());
    }
    compare();
  }

  // Until nothing is held anywhere.
  void finish() {
    for (uint32_t i = 0; i < plan_.nodes.size(); ++i) tick(i);
    while (oracle_.release_oldest()) {
      ASSERT_TRUE(world_.executor().release_oldest());
      // A release may have filled a module that keeps.
      for (uint32_t i = 0; i < plan_.nodes.size(); ++i) tick(i);
    }
    EXPECT_FALSE(world_.executor().release_oldest());
    compare();
    EXPECT_EQ(world_.executor().held_pkts() + world_.kept_pkts(), 0U);
    std::vector<uint32_t> exits(next_id_, 0);
    for (const auto* log : {&world_.log().left, &world_.log().dropped}) {
      for (const Leave& leave : *log) ++exits[leave.id];
    }
    for (uint64_t id = 0; id < next_id_; ++id) ASSERT_EQ(exits[id], 1U) << "packet " << id;
    expect_order();
  }

 private:
  void edit() {
    for (uint32_t k = rng_.below(4); k-- > 0;) {
      const uint32_t i = rng_.below(static_cast<uint32_t>(plan_.nodes.size()));
      if (rng_.below(3) == 0) {
        const uint64_t limit_ns = random_limit(rng_, i);
        world_.executor().set_age_limit(world_.node(i), limit_ns);
        oracle_.set_age_limit(i, limit_ns);
      } else if (rng_.below(2) == 0) {
        const uint32_t q = random_trigger(rng_, plan_.batch_pkts);
        const uint32_t release_at = rng_.below(q + 1);
        world_.executor().set_trigger(world_.node(i), q, release_at);
        oracle_.set_trigger(i, q, release_at);
      }
    }
  }

  void pass_time() {
    static constexpr uint64_t kTicks[] = {0, 1, 10, 100, 1000};
    now_ns_ += kTickNs * kTicks[rng_.below(5)] + rng_.below(5000);
    world_.set_now(now_ns_);
    oracle_.set_now(now_ns_);
  }

  void tick() { tick(rng_.below(static_cast<uint32_t>(plan_.nodes.size()))); }
  void tick(uint32_t i) {
    if (plan_.nodes[i].keep_one_in == 0) return;
    world_.tick(i);
    oracle_.tick(i);
  }

  void put_in_batch() {
    const uint32_t n = 1 + rng_.below(plan_.batch_pkts);
    std::vector<Pkt> batch(n);
    const uint32_t one_flow = rng_.below(4) == 0 ? rng_.below(kFlows) : kFlows;
    for (Pkt& pkt : batch) {
      pkt.id = next_id_++;
      pkt.flow = one_flow < kFlows ? one_flow : rng_.below(kFlows);
      entry_ticks_ = std::max(entry_ticks_ + 1, now_ns_ / kTickNs - rng_.below(5));
      pkt.entry_ns = entry_ticks_ * kTickNs;
      flow_of_.push_back(pkt.flow);
    }
    // A batch need not come in order of entry.
    if (rng_.below(2) == 0) std::swap(batch.front().entry_ns, batch.back().entry_ns);
    world_.run(batch.data(), n, rng_.below(4) == 0);
    oracle_.run(batch);
  }

  void expect_nothing_stranded() {
    for (uint32_t i = 0; i < plan_.nodes.size(); ++i) {
      const uint64_t oldest_ns = world_.oldest_held_ns(i);
      if (oldest_ns == exec::kNeverNs) continue;
      EXPECT_GT(oldest_ns + world_.node(i).queue->age_limit_ns, now_ns_) << "node " << i;
    }
  }

  void compare() {
    const Log& got = world_.log();
    const Log& wanted = oracle_.log();
    for (size_t k = 0; k < std::min(got.firings.size(), wanted.firings.size()); ++k) {
      const Firing& a = got.firings[k];
      const Firing& b = wanted.firings[k];
      ASSERT_EQ(a, b) << "firing " << k << ": node " << a.node << " let go " << a.size_pkts << " ("
                      << exec::kCauseNames[static_cast<int>(a.cause)] << "), should be node "
                      << b.node << ", " << b.size_pkts << " ("
                      << exec::kCauseNames[static_cast<int>(b.cause)] << ")";
    }
    ASSERT_EQ(got.firings.size(), wanted.firings.size());
    compare_exits(got.left, wanted.left, "left");
    compare_exits(got.dropped, wanted.dropped, "were dropped");
    const uint64_t inside = world_.executor().held_pkts() + world_.kept_pkts();
    ASSERT_EQ(inside, oracle_.inside_pkts());
    ASSERT_EQ(next_id_, got.left.size() + got.dropped.size() + inside);
    ASSERT_EQ(world_.executor().stats().dropped_pkts, got.dropped.size());
    ASSERT_EQ(world_.executor().stats().in_pkts, next_id_);
    for (uint32_t i = 0; i < plan_.nodes.size(); ++i) compare_counts(i);
  }

  static void compare_exits(const std::vector<Leave>& got, const std::vector<Leave>& wanted,
                            const char* what) {
    for (size_t k = 0; k < std::min(got.size(), wanted.size()); ++k) {
      ASSERT_EQ(got[k], wanted[k])
          << "packets that " << what << ", the " << k << "th: " << got[k].id << " at node "
          << got[k].node << ", should be " << wanted[k].id << " at node " << wanted[k].node;
    }
    ASSERT_EQ(got.size(), wanted.size()) << "packets that " << what;
  }

  void compare_counts(uint32_t i) {
    const auto& queue = *world_.node(i).queue;
    const Oracle::Buffer& buffer = oracle_.buffer(i);
    ASSERT_EQ(queue.size_pkts, buffer.held.size()) << "node " << i;
    const exec::NodeTotals totals = world_.executor().totals(world_.node(i));
    ASSERT_EQ(totals.batches, world_.ran(i).batches) << "node " << i;
    ASSERT_EQ(totals.pkts, world_.ran(i).pkts) << "node " << i;
    ASSERT_EQ(queue.late_releases, buffer.late_releases) << "node " << i;
    ASSERT_EQ(queue.arrived_pkts, buffer.arrived_pkts) << "node " << i;
    for (uint32_t c = 0; c < exec::kCauses; ++c) {
      ASSERT_EQ(queue.causes[c].firings, buffer.causes[c].firings) << "node " << i;
      ASSERT_EQ(queue.causes[c].pkts, buffer.causes[c].pkts) << "node " << i;
      ASSERT_EQ(queue.causes[c].wait_ns, buffer.causes[c].wait_ns) << "node " << i;
    }
  }

  // Packets of a flow take one way, but for those that a drop gate sent elsewhere.
  void expect_order() {
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> last;
    for (const Leave& leave : world_.log().left) {
      if (was_turned_away(leave.id)) continue;
      const auto [it, is_first] = last.try_emplace({leave.node, flow_of_[leave.id]}, leave.id);
      if (is_first) continue;
      ASSERT_LT(it->second, leave.id) << "flow " << flow_of_[leave.id] << " at node " << leave.node;
      it->second = leave.id;
    }
  }

  // Follows the packet's way by the rules of the plan.
  [[nodiscard]] bool was_turned_away(uint64_t id) const {
    const Pkt pkt{id, flow_of_[id]};
    uint32_t i = 0;
    while (!plan_.drops(i, pkt) && plan_.nodes[i].role != Role::kTerminal) {
      i = plan_.nodes[i].targets[plan_.gate_of(i, pkt)];
    }
    return plan_.drops(i, pkt);
  }

  Rng rng_;
  Plan plan_;
  World world_;
  Oracle oracle_;
  bool is_idle_hold_;
  uint64_t now_ns_ = 1'000'000'000;
  uint64_t entry_ticks_ = 0;
  uint64_t next_id_ = 0;
  std::vector<uint32_t> flow_of_;
};

void print(const Plan& plan) {
  std::printf("batch_pkts %u\n", plan.batch_pkts);
  for (uint32_t i = 0; i < plan.nodes.size(); ++i) {
    const NodePlan& node = plan.nodes[i];
    static constexpr const char* kRoles[] = {"in-place", "splitter", "terminal"};
    std::printf("%2u %s trigger %u (first %u) drops 1/%u to %d keeps 1/%u until %u ->", i,
                kRoles[static_cast<int>(node.role)], node.trigger_pkts, node.release_at_pkts,
                node.drop_one_in, node.drop_target, node.keep_one_in, node.emit_at);
    for (const uint32_t target : node.targets) std::printf(" %u", target);
    std::printf("\n");
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeeds = 400;
#else
constexpr uint64_t kSeeds = 10'000;
#endif

uint64_t setting(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

TEST(EngineOracle, ExecutorDoesAsTheOracleSays) {
  const bool is_replay = std::getenv("BP_SEED") != nullptr;
  const uint64_t first = setting("BP_SEED", 1);
  const uint64_t n = is_replay ? 1 : setting("BP_SEEDS", kSeeds);
  for (uint64_t seed = first; seed < first + n; ++seed) {
    Duel duel(seed);
    if (is_replay) print(random_plan(seed));
    for (uint32_t loop = 0; loop < 60 && !testing::Test::HasFailure(); ++loop) duel.step();
    if (!testing::Test::HasFailure()) duel.finish();
    ASSERT_FALSE(testing::Test::HasFailure()) << "replay with BP_SEED=" << seed;
  }
}

}  // namespace
}  // namespace batchplane::property
