// SPDX-License-Identifier: BSD-3-Clause
// egress_departure_test.cc - packets that a pace gave departure times, through a scheduler: when
// they are released, what their waits count from, and what an apply makes of them.
#include <gtest/gtest.h>

#include "modules/egress/egress_test_util.h"

namespace batchplane {
namespace egress_departure_test {

using namespace egress_test;

constexpr uint32_t kPkts = 64;  // of each flow, all sent at once
constexpr uint64_t kStepNs = 160;
// Sources of one task take turns, and a mailbox is looked into once a loop; and times have steps.
constexpr uint64_t kSlackNs = 5 * kStepNs + 16;

// Flow f: 1000-byte packets, one in (f + 1) * gap_ns.
PipelineSpec paced(uint64_t gap_ns, Dict egress, uint32_t n_workers) {
  egress["limit_pkts"] = 1000;
  PipelineSpec spec = three_direct_senders(std::move(egress), n_workers);
  for (ModuleSpec& module : spec.modules) {
    if (module.kind == "source") module.params["limit_pkts"] = kPkts;
  }
  for (uint32_t f = 0; f < kFlows; ++f) {
    const std::string pace = nth("pace", f);
    const Dict params{{"rate_bps", 8'000'000'000'000 / (gap_ns * (f + 1))},
                      {"horizon_us", 10'000'000}};
    spec.modules.push_back({pace, "pace", params});
    for (EdgeSpec& edge : spec.edges) {
      if (edge.from == nth("mark", f)) edge.from = pace;
    }
    spec.edges.push_back({nth("mark", f), "0", pace});
    for (FlowSpec& flow : spec.flows) {
      const auto at = std::ranges::find(flow.path, nth("mark", f));
      if (at != flow.path.end()) flow.path.insert(at + 1, pace);
    }
  }
  return spec;
}
Dict calendar() {
  return {{"discipline", "calendar"},
          {"flows", List{Dict{{"flow", 0}}, Dict{{"flow", 1}}, Dict{{"flow", 2}}}}};
}
// Released by now, when the first packet left at from_ns and the others each gap_ns later.
uint64_t due_pkts(uint64_t from_ns, uint64_t gap_ns, uint64_t now_ns) {
  return now_ns < from_ns ? 0 : std::min<uint64_t>(kPkts, (now_ns - from_ns) / gap_ns + 1);
}

// On one worker, and through mailboxes.
TEST(EgressDeparture, PacketsLeaveAtTheirTimes) {
  for (const uint32_t n_workers : {1U, 3U}) {
    EngineRig rig(paced(10'000, calendar(), n_workers));
    const uint64_t from_ns = rig.now_ns + kStepNs;
    while (rig.now_ns < from_ns + 2'100'000) {
      rig.loop(1, kStepNs);
      const std::vector<uint64_t> all = released(rig);
      for (uint32_t f = 0; f < kFlows; ++f) {
        const uint64_t gap_ns = 10'000 * (f + 1);
        ASSERT_LE(all[f], due_pkts(from_ns, gap_ns, rig.now_ns)) << f << " at " << rig.now_ns;
        ASSERT_GE(all[f], due_pkts(from_ns, gap_ns, rig.now_ns - kSlackNs))
            << f << " at " << rig.now_ns;
      }
    }
    EXPECT_EQ(released(rig), std::vector<uint64_t>(kFlows, kPkts));
    rig.expect_pool_whole(rig.balanced());
    // Waits count from the departure: none has been longer than a few loops.
    const Value told = rig.engine().graph().at("egress").module->command("status", Dict{});
    for (const Value& row : told["rows"].as_list()) EXPECT_LE(row["sojourn_p99_ns"].as_int(), 1024);
  }
}

TEST(EgressDeparture, AFlowsOwnDelayComesOnTop) {
  Dict params = calendar();
  params["flows"] = List{Dict{{"flow", 0}, {"delay_us", 50}}, Dict{{"flow", 1}}, Dict{{"flow", 2}}};
  EngineRig rig(paced(10'000, params, 1));
  const uint64_t from_ns = rig.now_ns + kStepNs + 50'000;
  while (rig.now_ns < from_ns + 700'000) {
    rig.loop(1, kStepNs);
    const uint64_t n = released(rig)[0];
    ASSERT_LE(n, due_pkts(from_ns, 10'000, rig.now_ns));
    ASSERT_GE(n, due_pkts(from_ns, 10'000, rig.now_ns - kSlackNs));
  }
}

TEST(EgressDeparture, OtherDisciplinesIgnoreIt) {
  Dict params = calendar();
  params["discipline"] = "qfq";
  EngineRig rig(paced(1'000'000, params, 1));
  rig.loop(20, kStepNs);
  EXPECT_EQ(released(rig), std::vector<uint64_t>(kFlows, kPkts));
}

// The times of packets in queues and mailboxes would be waits of more than a minute to CoDel.
TEST(EgressDeparture, AreNoEntryTimesOfATree) {
  for (const uint32_t n_workers : {1U, 3U}) {
    EngineRig rig(paced(1'000'000, calendar(), n_workers), 65'536);
    rig.loop(2, kStepNs);
    if (n_workers > 1) rig.worker(0).loop_once();
    List flows;
    for (uint32_t f = 0; f < kFlows; ++f) {
      flows.push_back(Dict{{"flow", f}, {"queue", "codel"}});
    }
    const Dict tree{{"discipline", "tree"},
                    {"flows", flows},
                    {"rate_bps", 80'000'000},
                    {"codel_target_us", 1'000'000},
                    {"codel_interval_us", 10}};
    rig.engine().apply(rig.build(paced(1'000'000, tree, n_workers)));
    rig.loop(40'000, 1000);
    const Snapshot end = rig.balanced();
    EXPECT_EQ(end.balance.dropped_pkts, 0U);
    EXPECT_EQ(end.balance.held_pkts, 0U);
    const Value shown = rig.engine().graph().at("egress").module->show();
    for (const Value& flow : shown["flows"].as_list()) EXPECT_FALSE(flow.has("marked_pkts"));
    rig.expect_pool_whole(end);
  }
}

// Packets of a source that has sent all, 1 to 3 ms apart, while the next graph is a calendar.
void expect_departures_over_apply(EngineRig& rig) {
  const uint64_t from_ns = rig.now_ns + kStepNs;
  rig.loop(20, kStepNs);
  EXPECT_LE(rig.balanced().balance.sent_pkts, kFlows);
  rig.engine().apply(rig.build(paced(1'000'000, calendar(), 1)));
  while (rig.now_ns < from_ns + 30'000'000) {
    rig.loop(1, 100'000);
    const uint64_t sent = rig.balanced().balance.sent_pkts;
    uint64_t due = 0;
    uint64_t was_due = 0;
    for (uint32_t f = 0; f < kFlows; ++f) {
      due += due_pkts(from_ns, 1'000'000 * (f + 1), rig.now_ns);
      was_due += due_pkts(from_ns, 1'000'000 * (f + 1), rig.now_ns - 200'016);
    }
    ASSERT_LE(sent, due);
    ASSERT_GE(sent, was_due);
  }
}

// From a queue without times, and from a calendar that is too small; long after the clock began.
TEST(EgressDeparture, OutlastsAnApplyThatBringsTheCalendar) {
  for (const bool is_calendar : {false, true}) {
    Dict old = calendar();
    if (is_calendar) {
      old["total_limit_pkts"] = 1'000;
    } else {
      old["discipline"] = "fifo";
      old["rate_bps"] = 8'000;  // one packet a second
    }
    EngineRig rig(paced(1'000'000, old, 1), 65'536);
    rig.now_ns = 100'000'000'000;
    expect_departures_over_apply(rig);
  }
}

}  // namespace egress_departure_test
}  // namespace batchplane
