// SPDX-License-Identifier: BSD-3-Clause
// session_hold_test.cc - held packets leave in order, or are counted; and the queues against a
// simple model.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "base/rng.h"
#include "core/module/register.h"
#include "engine_rig.h"
#include "modules/session/session_queue.h"
#include "modules/session/session_rules.h"
#include "modules/session/session_test_util.h"

namespace batchplane {
namespace session_hold_test {

using session::SessionQueues;

Dict far_action(int64_t seid, int id, const char* action) {
  return {{"seid", seid}, {"fars", List{Dict{{"id", id}, {"action", action}}}}};
}

// Lookup, hold and enforce, on one table.
struct Way {
  Environment env;
  ModuleHarness downlink;
  ModuleHarness hold;
  ModuleHarness enforce;

  explicit Way(const Dict& params = {}, const List& sessions = List{test_session()})
      : downlink("session_downlink", {{"sessions", sessions}}, 1, &env),
        hold("session_hold", params, 1, &env),
        enforce("session_enforce", {}, 1, &env) {}

  Outcome send(const std::vector<Bytes>& frames) {
    std::vector<Packet*> pkts;
    for (const Bytes& frame : frames) {
      Packet* probe = downlink.make_packet(frame);
      Packet* one[] = {probe};
      downlink.info().run(&downlink.module(), downlink.ctx(), one, 1);
      Packet* pkt = hold.make_packet(frame);
      pkt->set_mark(probe->mark());
      downlink.ctx().free(probe);
      pkts.push_back(pkt);
    }
    return hold.run_packets(std::move(pkts));
  }
  void modify(const Dict& change) { hold.command("modify", change); }
};

std::vector<Bytes> numbered(uint32_t first, uint32_t n, uint16_t port = 53) {
  std::vector<Bytes> frames;
  for (uint32_t i = first; i < first + n; ++i) {
    Bytes frame = downlink_frame(port);
    net::store32(&frame[60], i);
    frames.push_back(std::move(frame));
  }
  return frames;
}

TEST(SessionHold, HoldsInOrderAndLetsGo) {
  Way way;
  way.modify(far_action(1, 1, "buffer"));
  EXPECT_EQ(way.send(numbered(0, 3)).kept_pkts, 3U);
  // The other bearer is not held.
  EXPECT_EQ(way.send(numbered(0, 2, 5000)).outputs.size(), 2U);
  EXPECT_EQ(way.send(numbered(3, 2)).kept_pkts, 2U);
  EXPECT_EQ(way.hold.module().held_pkts(), 5U);
  EXPECT_EQ(way.hold.housekeep().emitted.size(), 0U);
  way.modify(far_action(1, 1, "forward"));
  // They leave with the next packet, ahead of it.
  EXPECT_EQ(way.send(numbered(5, 1)).at(0), numbered(0, 6));
  EXPECT_EQ(way.hold.module().held_pkts(), 0U);
  EXPECT_EQ(way.hold.leaked_pkts(), 0U);
}

TEST(SessionHold, LetsGoWithoutFurtherTraffic) {
  Way way;
  way.modify(far_action(1, 1, "buffer"));
  way.send(numbered(0, 4));
  way.modify(far_action(1, 1, "forward"));
  EXPECT_EQ(way.hold.housekeep().at(0), numbered(0, 4));
  const Value shown = way.hold.module().show();
  EXPECT_EQ(shown["held_ever"].as_int(), 4);
  EXPECT_EQ(shown["released"].as_int(), 4);
}

TEST(SessionHold, BeyondItsLimitASessionLosesTheNewestCounted) {
  Way way(Dict{{"session_pkts", 3}});
  way.modify(far_action(1, 1, "buffer"));
  EXPECT_EQ(way.send(numbered(0, 5)).dropped_for("session_hold_full"), 2U);
  way.modify(Dict{{"seid", 1}, {"bar", Dict{{"hold_pkts", 4}}}});
  EXPECT_EQ(way.send(numbered(5, 5)).dropped_for("session_hold_full"), 4U);
  way.modify(far_action(1, 1, "forward"));
  EXPECT_EQ(way.hold.housekeep().emitted.size(), 4U);
  EXPECT_EQ(way.hold.module().show()["full"].as_int(), 6);
}

TEST(SessionHold, TheModulesLimitIsThatOfAllSessions) {
  Way way(Dict{{"hold_pkts", 5}},
          List{test_session(1, 100, "10.45.0.2"), test_session(2, 200, "10.45.0.3")});
  for (const int64_t seid : {1, 2}) way.modify(far_action(seid, 1, "buffer"));
  EXPECT_EQ(way.send(numbered(0, 3)).kept_pkts, 3U);
  const std::vector<Bytes> others(4, downlink_frame(53, kTestUe + 1));
  EXPECT_EQ(way.send(others).dropped_for("session_hold_full"), 2U);
}

// When the session is deleted or its FAR drops, held packets go to the next module, which gives the
// reason.
TEST(SessionHold, NothingIsLostWithoutAReason) {
  Way way;
  way.modify(far_action(1, 1, "buffer"));
  way.send(numbered(0, 2));
  way.modify(far_action(1, 1, "drop"));
  const auto enforced = [&](const char* reason) {
    way.hold.module().housekeep(way.hold.ctx(), 100'000);
    std::vector<Packet*> pkts;
    for (uint32_t i = 0; i < way.hold.ctx().n_emitted; ++i) {
      pkts.push_back(way.hold.ctx().emitted[i].pkt);
    }
    way.hold.ctx().n_emitted = way.hold.ctx().n_fates = 0;
    return way.enforce.run_packets(std::move(pkts)).dropped_for(reason);
  };
  EXPECT_EQ(enforced("far_drop"), 2U);
  way.modify(far_action(1, 1, "buffer"));
  way.send(numbered(0, 3));
  way.hold.command("delete", Dict{{"seid", 1}});
  // The new session with that SEID gets none of them.
  way.hold.command("add", test_session());
  EXPECT_EQ(enforced("session_gone"), 3U);
}

TEST(SessionHold, MorePacketsThanOneCallMaySendStayInOrder) {
  Way way(Dict{{"session_pkts", 900}});
  way.modify(far_action(1, 1, "buffer"));
  for (uint32_t i = 0; i < 800; i += 100) way.send(numbered(i, 100));
  way.modify(far_action(1, 1, "forward"));
  std::vector<Bytes> left = way.send(numbered(800, 10)).at(0);
  EXPECT_LT(left.size(), 800U);
  for (uint32_t round = 0; round < 3; ++round) {
    std::ranges::move(way.hold.housekeep().at(0), std::back_inserter(left));
  }
  std::ranges::move(way.send(numbered(810, 10)).at(0), std::back_inserter(left));
  EXPECT_EQ(left, numbered(0, 820));
}

TEST(SessionHold, TellsOfTheFirstPacket) {
  Way way;
  way.modify(far_action(1, 1, "buffer"));
  const auto reports = [&] { return way.hold.command("reports")["reports"].as_list(); };
  EXPECT_TRUE(reports().empty());
  way.send(numbered(0, 3));
  way.send(numbered(3, 3));
  ASSERT_EQ(reports().size(), 1U);
  EXPECT_EQ(reports()[0]["kind"].as_string(), "downlink_data");
  EXPECT_EQ(reports()[0]["seid"].as_int(), 1);
  EXPECT_EQ(reports()[0]["pdr"].as_int(), 2);
  way.modify(far_action(1, 1, "forward"));
  way.hold.housekeep();
  way.modify(
      Dict{{"seid", 1}, {"fars", List{Dict{{"id", 1}, {"action", "buffer"}, {"notify", false}}}}});
  way.send(numbered(6, 3));
  EXPECT_EQ(reports().size(), 1U);
}

TEST(SessionHold, WithoutItBufferingIsAReason) {
  Environment env;
  ModuleHarness downlink("session_downlink", {{"sessions", List{test_session()}}}, 1, &env);
  ModuleHarness enforce("session_enforce", {}, 1, &env);
  downlink.command("modify", far_action(1, 1, "buffer"));
  enforce.meta() = {};
  Packet* pkt = enforce.make_packet(downlink_frame());
  pkt->set_mark(1U << 24 | session::slot_at(0, false));
  EXPECT_EQ(enforce.run_packets({pkt}).dropped_for("far_buffer"), 1U);
  EXPECT_NE(refusal_of([&] {
              downlink.command("modify", far_action(1, 0, "buffer"));
            }).find("uplink rule's far cannot buffer"),
            std::string::npos);
  EXPECT_NE(refusal_of([&] {
              downlink.command("modify", far_action(1, 1, "keep"));
            }).find("forward, drop or buffer"),
            std::string::npos);
}

TEST(SessionQueues, AreThoseOfSimpleOnes) {
  constexpr uint32_t kMost = 40;
  ModuleHarness pool("null");
  SessionQueues queues(kMost);
  std::map<uint32_t, std::deque<Packet*>> model;
  Rng rng(11);
  uint32_t held = 0;
  for (uint32_t step = 0; step < 20'000; ++step) {
    const uint32_t session = rng.below(12) * 64;  // few buckets
    const uint32_t queue = queues.find(session);
    ASSERT_EQ(queue == session::kNone, !model.contains(session));
    if (rng.below(2) == 0) {
      ASSERT_EQ(queues.is_full(), held == kMost);
      if (held == kMost) continue;
      Packet* pkt = pool.make_packet({1});
      pkt->set_mark(rng.below(1000));
      queues.push(session, pkt);
      model[session].push_back(pkt);
      ++held;
    } else if (queue != session::kNone) {
      uint32_t room = rng.below(10);
      const uint32_t parts = 1 + rng.below(3);
      std::vector<Packet*> taken;
      const bool is_whole = queues.sift(queue, [&](Packet* pkt) {
        if (pkt->mark() % parts != 0) return SessionQueues::Taken::kNo;
        if (room-- == 0) return SessionQueues::Taken::kNoRoom;
        taken.push_back(pkt);
        return SessionQueues::Taken::kYes;
      });
      std::deque<Packet*>& expected = model[session];
      for (Packet* pkt : taken) {
        const auto first =
            std::ranges::find_if(expected, [&](Packet* each) { return each->mark() % parts == 0; });
        ASSERT_EQ(*first, pkt);
        expected.erase(first);
        pool.ctx().free(pkt);
        --held;
      }
      if (expected.empty()) {
        // If sift() ran out of room, the next call goes on.
        if (!is_whole) (void)queues.sift(queue, [](Packet*) { return SessionQueues::Taken::kNo; });
        model.erase(session);
      }
    }
    ASSERT_EQ(queues.n_held(), held);
    ASSERT_EQ(queues.n_queues(), model.size());
  }
  queues.give_up([&](Packet* pkt) { pool.ctx().free(pkt); });
  EXPECT_EQ(queues.n_held(), 0U);
  EXPECT_EQ(pool.leaked_pkts(), 0U);
}

// Packets of 8 users in turn, each with a sequence number per user.
class Users final : public Module {
 public:
  static constexpr uint32_t kUsers = 8;
  explicit Users(const Args& /*args*/) {}
  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    const uint32_t n = std::min(max, 5U);
    if (is_off || !ctx.pool->alloc_bulk(pkts, n)) return 0;
    for (uint32_t i = 0; i < n; ++i, ++sent_) {
      const Bytes frame = downlink_frame(53, kTestUe + sent_ % kUsers);
      pkts[i]->reset(static_cast<uint32_t>(frame.size()));
      std::memcpy(pkts[i]->data(), frame.data(), frame.size());
      net::store32(pkts[i]->data() + 60, sent_);
      pkts[i]->meta() = PacketMeta{};
      pkts[i]->meta().entry_ns = ctx.now_ns;
    }
    return n;
  }
  inline static bool is_off = false;

 private:
  uint32_t sent_ = 0;
};
const Register<Users> kUsersInput{{.kind = "test_users", .help = "Numbered packets for users."}};

class InOrder final : public Module {
 public:
  explicit InOrder(const Args& /*args*/) {}
  void consume(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      const uint32_t user = net::load32(batch[i]->data() + 30) - kTestUe;
      const int64_t number = 1 + int64_t{net::load32(batch[i]->data() + 60)};
      if (number <= last[user]) ++passed;
      last[user] = number;
    }
    ctx.free(batch.pkts, batch.size_pkts);
  }
  inline static std::map<uint32_t, int64_t> last;
  inline static uint32_t passed = 0;
};
const Register<InOrder> kInOrder{
    {.kind = "test_in_order", .help = "Counts overtaking.", .is_egress = true}};

Module* hold_of(EngineRig& rig) {
  return std::ranges::find_if(rig.engine().graph().instances,
                              [](const auto& each) { return each.module->name() == "hold"; })
      ->module.get();
}

void apply_again(EngineRig& rig, const PipelineSpec& spec) {
  auto env = std::make_unique<Environment>();
  env->quiescence = rig.engine().quiescence().get();
  env->carry_over(*rig.engine().graph().env);
  rig.engine().apply(build_graph(spec, std::move(env)));
}

// In the engine, with buffers before and behind, while forwarding actions change and sessions come
// and go: every packet is accounted for at any time, and no packet overtakes another of its user.
TEST(SessionHold, BooksAreRightAndOrderIsKeptWhileActionsChange) {
  PipelineSpec spec;
  List sessions;
  for (uint32_t i = 0; i < Users::kUsers; ++i) {
    sessions.push_back(test_session(1 + i, 100 + i, ("10.45.0." + std::to_string(2 + i)).c_str()));
  }
  spec.modules = {{"in", "test_users", {}},
                  {"users", "session_downlink", {{"sessions", sessions}}},
                  {"hold", "session_hold", {{"hold_pkts", 300}, {"session_pkts", 100}}},
                  {"enforce", "session_enforce", {}},
                  {"out", "test_in_order", {}}};
  spec.modules[2].trigger_pkts = 12;
  spec.modules[3].trigger_pkts = 9;
  spec.edges = {{"in", "0", "users"},
                {"users", "0", "hold"},
                {"hold", "0", "enforce"},
                {"enforce", "0", "out"}};
  spec.flows = {{"f", {"in", "users", "hold", "enforce", "out"}, 0}};
  Users::is_off = false;
  InOrder::last.clear();
  InOrder::passed = 0;
  EngineRig rig(spec);
  Module* hold = hold_of(rig);
  Rng rng(3);
  for (uint32_t round = 0; round < 600; ++round) {
    rig.loop(1 + rng.below(60), 1 + rng.below(100'000));
    const int64_t seid = 1 + rng.below(Users::kUsers);
    const char* const actions[] = {"forward", "buffer", "buffer", "forward", "drop"};
    if (rng.below(20) == 0) {
      const Dict session = sessions[static_cast<size_t>(seid - 1)].as_dict();
      hold->command("delete", Dict{{"seid", seid}});
      rig.loop(rng.below(3));
      hold->command("add", session);
    } else {
      hold->command("modify", far_action(seid, 1, actions[rng.below(5)]));
    }
    (void)rig.balanced();
  }
  // Applying the same pipeline again leaves held packets in place.
  for (int64_t seid = 1; seid <= Users::kUsers; ++seid) {
    hold->command("modify", far_action(seid, 1, "buffer"));
  }
  rig.loop(50, 1000);
  const uint64_t held_pkts = hold->held_pkts();
  EXPECT_GT(held_pkts, 100U);
  apply_again(rig, spec);
  hold = hold_of(rig);
  EXPECT_EQ(hold->held_pkts(), held_pkts);
  const Snapshot busy = rig.balanced();
  EXPECT_GT(busy.balance.dropped_pkts, 1000U);
  for (int64_t seid = 1; seid <= Users::kUsers; ++seid) {
    hold->command("modify", far_action(seid, 1, "forward"));
  }
  Users::is_off = true;
  rig.loop(200, 100'000);
  EXPECT_EQ(hold->held_pkts(), 0U);
  EXPECT_GT(hold->show()["released"].as_int(), 1000);
  EXPECT_EQ(InOrder::passed, 0U);
  rig.expect_pool_whole(rig.balanced());
}

}  // namespace session_hold_test
}  // namespace batchplane
