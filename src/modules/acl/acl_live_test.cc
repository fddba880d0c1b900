// SPDX-License-Identifier: BSD-3-Clause
// acl_live_test.cc - access lists from files, live edits under traffic, saving, and applies.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/module/live_table.h"
#include "modules/acl/acl_test_util.h"

namespace batchplane {
namespace {

TEST(AclLive, LiveEditsKeepTheCountsOfRulesThatStay) {
  ModuleHarness harness("acl", with_rules({rule("permit", {{"dst_ports", 2000}, {"name", "a"}})}));
  (void)harness.run({make_frame(), make_frame()});
  (void)harness.command("add", Dict{{"at", 0}, {"items", List{rule("deny", {{"dst_ports", 53}})}}});
  const Outcome outcome = harness.run({make_frame({.port_dst = 53}), make_frame()});
  EXPECT_EQ(outcome.dropped_for("acl_denied"), 1U);
  const Value list = harness.command("list");
  EXPECT_EQ(list["rules"].as_list()[0]["pkts"].as_int(), 1);
  EXPECT_EQ(list["rules"].as_list()[1]["pkts"].as_int(), 3);
  (void)harness.command("delete", Dict{{"dst_ports", 53}});
  (void)harness.command("delete", Dict{{"name", "a"}});
  EXPECT_EQ(harness.run({make_frame()}).dropped_for("acl_denied"), 1U);
  (void)harness.command("replace", with_rules({rule("permit", {{"proto", "udp"}})}));
  EXPECT_EQ(harness.run({make_frame()}).outputs.size(), 1U);
  EXPECT_EQ(harness.command("list", Dict{{"offset", 1}})["rules"].as_list().size(), 0U);
}

TEST(AclLive, ALiveEditThatFailsChangesNothing) {
  ModuleHarness harness("acl", with_rules({rule("permit", {{"dst_ports", 2000}})}));
  const auto refused = [&](const char* verb, const Value& args) {
    EXPECT_THROW((void)harness.command(verb, args), ConfigError) << verb;
    EXPECT_EQ(harness.module().show()["rules"].as_int(), 1);
    EXPECT_EQ(harness.run({make_frame()}).outputs.size(), 1U);
  };
  refused("add", rule("permit", {{"dst_ports", 2000}}));
  refused("add", rule("gate 1", {{"dst_ports", 2001}}));  // only one gate is linked
  refused("add", Dict{{"items", List{rule("deny"), Dict{}}}});
  refused("delete", Dict{{"name", "none"}});
  refused("delete", Dict{});
  refused("replace", Dict{});
  for (const char* no_file : {"/nowhere", "/tmp", "/dev/zero"}) {
    refused("replace", Dict{{"rules_file", no_file}});
    refused("add", Dict{{"file", no_file}});
  }
  refused("flush", Dict{});
}

TEST(AclLive, SavedParamsMakeTheSameList) {
  ModuleHarness harness("acl", {{"synthetic", Dict{{"style", "paper"}, {"count", 4}}}});
  EXPECT_EQ(harness.module().saved_params()["rules"].as_list().size(), 0U);
  (void)harness.command("add", rule("mark 3", {{"src", "2001:db8::/32"},
                                               {"src_ports", "1-9"},
                                               {"tcp_flags", "syn,!ack"},
                                               {"priority", -2},
                                               {"name", "x"}}));
  (void)harness.command("add", rule("deny", {{"dst", "::/0"}}));
  const Dict saved = harness.module().saved_params();
  ModuleHarness again("acl", saved);
  EXPECT_EQ(Value(again.command("list")), Value(harness.command("list")));
}

TEST(AclLive, CountsOutliveAnApply) {
  const Dict params = with_rules({rule("permit", {{"dst_ports", 2000}})});
  ModuleHarness first("acl", params);
  ModuleHarness second("acl", params);
  (void)first.run({make_frame()});
  second.module().inherit(first.module());
  (void)first.run({make_frame()});
  second.module().adopt(first.module());
  (void)second.run({make_frame()});
  EXPECT_EQ(second.command("list")["rules"].as_list()[0]["pkts"].as_int(), 3);
  ModuleHarness third("acl", params);
  third.module().inherit(second.module());
  third.module().adopt(second.module());
  EXPECT_EQ(third.command("list")["rules"].as_list()[0]["pkts"].as_int(), 3);
}

// A worker runs while the list is replaced: each packet is decided by the old or the new list and
// counted once.
TEST(AclLive, ReplacedUnderTrafficNothingIsLostOrMiscounted) {
  Quiescence quiescence;
  Environment env;
  env.quiescence = &quiescence;
  const Dict kept = rule("gate 1", {{"dst_ports", 2000}, {"priority", 1}});
  ModuleHarness harness("acl", with_rules({kept}), 3, &env);
  std::atomic<bool> must_stop{false};
  std::atomic<uint64_t> n_runs{0};
  std::atomic<uint64_t> n_wrong{0};
  quiescence.set_online(0, true);
  std::thread worker([&] {
    while (!must_stop.load()) {
      const Outcome outcome = harness.run({make_frame(), make_frame({.port_dst = 7})});
      const std::vector<uint32_t> gates = outcome.gates();
      const bool is_good =
          gates.size() == 2 ? gates[0] == 1 && gates[1] == 2 : gates.size() == 1 && gates[0] == 1;
      if (!is_good) n_wrong.fetch_add(1);
      n_runs.fetch_add(1);
      quiescence.pass(0);
    }
    quiescence.set_online(0, false);
  });
  for (uint32_t i = 0; i < 60; ++i) {
    List rules{kept};
    if (i % 2 == 0) rules.emplace_back(rule("gate 2", {{"proto", "udp"}}));
    (void)harness.command("replace", with_rules(std::move(rules)));
  }
  must_stop.store(true);
  worker.join();
  EXPECT_EQ(n_wrong.load(), 0U);
  EXPECT_EQ(static_cast<uint64_t>(harness.command("list")["rules"].as_list()[0]["pkts"].as_int()),
            n_runs.load());
}

TEST(AclLive, LiveEditsOutliveAnApplyThatDeclaresTheSame) {
  const Dict params = with_rules({rule("permit", {{"dst_ports", 2000}})});
  ModuleHarness first("acl", params);
  (void)first.command("add", rule("deny", {{"src", "10.0.0.0/8"}, {"priority", 1}}));
  EXPECT_EQ(first.run({make_frame()}).dropped_for("acl_denied"), 1U);
  ModuleHarness same("acl", params);
  same.module().inherit(first.module());
  same.module().adopt(first.module());
  EXPECT_EQ(same.run({make_frame()}).dropped_for("acl_denied"), 1U);
  EXPECT_EQ(same.command("list")["rules"].as_list()[1]["pkts"].as_int(), 2);
  EXPECT_EQ(same.module().saved_params()["rules"].as_list().size(), 2U);
  ModuleHarness other("acl", with_rules({rule("permit", {{"dst_ports", "1999-2001"}})}));
  other.module().inherit(first.module());
  other.module().adopt(first.module());
  EXPECT_EQ(other.run({make_frame()}).outputs.size(), 1U);
  EXPECT_EQ(other.module().show()["rules"].as_int(), 1);
}

TEST(AclLive, RulesOfAFile) {
  const std::string path =
      write_file("acl_rules.txt",
                 "# comment\n"
                 "@10.0.0.0/8\t10.0.0.2/32\t0 : 65535\t2000 : 2000\t0x11/0xFF\n"
                 "\n"
                 "@0.0.0.0/0 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF "
                 "0x1000/0x1000\r\n");
  ModuleHarness harness("acl", {{"rules_file", path}, {"rules_file_action", "gate 1"}});
  const Outcome outcome = harness.run({make_frame(), tcp_frame(0x10), tcp_frame(2)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 1}));
  EXPECT_EQ(outcome.dropped_for("acl_denied"), 1U);
  ModuleHarness live("acl", {{"rules_file_action", "mark 2"}});
  (void)live.command("add", Dict{{"file", path}});
  EXPECT_EQ(live.run({make_frame(), tcp_frame(0x10), tcp_frame(2)}).outputs.size(), 2U);
  EXPECT_EQ(live.module().saved_params()["rules"].as_list().size(), 2U);
}

TEST(AclLive, OneBadLineOfTenThousandIsNamed) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) {
    text += "@10." + std::to_string(i / 250) + "." + std::to_string(i % 250) +
            ".0/24 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x00 0x0000/0x0000\n";
    if (i == 7000) text.replace(text.rfind("0 : 65535"), 9, "9 : 1    ");
  }
  const std::string path = write_file("acl_bad.txt", text);
  ModuleHarness harness("acl", with_rules({rule("permit")}));
  try {
    (void)harness.command("replace", Dict{{"rules_file", path}});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.line().find("acl_bad.txt:7001"), std::string::npos) << error.line();
    EXPECT_NE(error.line().find("upside down"), std::string::npos) << error.line();
  }
  EXPECT_EQ(harness.module().show()["rules"].as_int(), 1);
}

TEST(AclLive, BadLines) {
  const char* const kLines[] = {
      "10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00",
      "@10.0.0.1/8 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00",
      "@10.0.0.0/8 0.0.0.0/0 0 - 1 0 : 1 0x00/0x00",
      "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 99999 0x00/0x00",
      "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x00/0x0f",
      "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x11/0xff 0x02/0x02",
      "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x06/0xff 0x0202/0x0202",
      "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x06/0xff 0x02/0x02 more",
      "@10.0.0.0/8 0.0.0.0/0 0 : 1",
      "@0.0.0.0/0 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00\n@0.0.0.0/0 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00",
  };
  for (const char* line : kLines) {
    const std::string path = write_file("acl_line.txt", line);
    EXPECT_NE(error_of({{"rules_file", path}}).find("acl_line.txt:"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace batchplane
