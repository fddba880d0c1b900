// SPDX-License-Identifier: BSD-3-Clause
// session_table_test.cc - sessions are added, changed and removed while packets are looked up; from
// files and commands, across an apply, and when saved.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/rng.h"
#include "modules/session/session_table.h"
#include "modules/session/session_test_util.h"

namespace batchplane {
namespace session_table_test {

class TextFile {
 public:
  explicit TextFile(const std::string& text)
      : path_((std::filesystem::temp_directory_path() /
               ("batchplane_sessions_" + std::to_string(getpid())))
                  .string()) {
    std::ofstream(path_) << text;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr const char* kLine =
    R"({"seid": 7, "ue": "10.45.0.7", "pdrs": [{"id": 1, "source": "core", "far": 1}], )"
    R"("fars": [{"id": 1, "teid": 5, "peer": "192.0.2.2"}]})";

uint32_t taken(ModuleHarness& harness, uint32_t ip_dst) {
  return static_cast<uint32_t>(harness.run({downlink_frame(53, ip_dst)}).outputs.size());
}

TEST(SessionTable, FindsUsersAndTheirBearers) {
  ModuleHarness harness("session_downlink", {{"sessions", List{test_session()}}, {"by", "bearer"}},
                        2);
  const Outcome outcome =
      harness.run({downlink_frame(), downlink_frame(5000), downlink_frame(5001)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{0, 1, 0}));
  EXPECT_EQ(harness.run({downlink_frame(53, 0x0a2d0003)}).dropped_for("unknown_ue"), 1U);
}

TEST(SessionTable, AFileHasASessionPerLine) {
  const TextFile file(std::string("# users\n\n") + kLine + "\n");
  ModuleHarness harness("session_downlink", {{"file", file.path()}});
  EXPECT_EQ(taken(harness, 0x0a2d0007), 1U);
  // Sessions from a file are saved as the file's name, not repeated.
  const Dict saved = harness.module().saved_params();
  EXPECT_EQ(saved.at("file").as_string(), file.path());
  EXPECT_TRUE(saved.at("sessions").as_list().empty());
}

TEST(SessionTable, ABadLineIsRefusedByNumber) {
  const std::pair<const char*, const char*> bad[] = {
      {"{\"seid\": 7", "no valid JSON"},
      {"[]", "expected a mapping"},
      {R"({"seid": 8, "ue": "10.45.0.300", "pdrs": []})", "ue: expected"},
      {R"({"seid": 7, "pdrs": [{"id": 1, "source": "up", "far": 1}]})", "pdrs[0].source"},
      {"seid 7 ue 10.45.0.2", "no valid JSON"}};
  for (const auto& [line, says] : bad) {
    const TextFile file(std::string(kLine) + "\n" + line + "\n");
    const std::string refused = refusal_of([&] {
      ModuleHarness("session_downlink", {{"file", file.path()}});
    });
    EXPECT_NE(refused.find(file.path() + ":2"), std::string::npos) << refused;
    EXPECT_NE(refused.find(says), std::string::npos) << refused;
  }
  EXPECT_NE(refusal_of([] {
              ModuleHarness("session_downlink", {{"file", "/nowhere/at/all"}});
            }),
            "");
}

TEST(SessionTable, ComesAndGoesLive) {
  ModuleHarness harness("session_downlink");
  EXPECT_EQ(taken(harness, kTestUe), 0U);
  harness.command("add", test_session());
  EXPECT_EQ(taken(harness, kTestUe), 1U);
  const TextFile file(kLine);
  EXPECT_EQ(harness.command("add", Dict{{"file", file.path()}})["sessions"].as_int(), 2);
  EXPECT_EQ(taken(harness, 0x0a2d0007), 1U);
  harness.command("delete", Dict{{"items", List{1, 7}}});
  EXPECT_EQ(taken(harness, kTestUe) + taken(harness, 0x0a2d0007), 0U);
  harness.command("replace", Dict{{"items", List{test_session(3, 300, "10.45.0.3")}}});
  EXPECT_EQ(taken(harness, 0x0a2d0003), 1U);
  EXPECT_EQ(harness.command("list")["matching"].as_int(), 1);
}

TEST(SessionTable, ARefusedCommandChangesNothing) {
  ModuleHarness harness("session_downlink", {{"sessions", List{test_session()}}});
  const std::pair<Dict, const char*> bad[] = {
      {test_session(2, 100, "10.45.0.9"), "tunnel endpoint 100 belongs to session 1"},
      {test_session(2, 200, "10.45.0.2"), "address 10.45.0.2 belongs to session 1"},
      {{{"items", List{test_session(2, 200, "10.45.0.9"), test_session(2, 201, "10.45.0.8")}}},
       "session 2 is given twice"},
      {{{"items", List{test_session(2, 200, "10.45.0.9"), test_session(3, 200, "10.45.0.8")}}},
       "tunnel endpoint 200 belongs to session 2"},
      {{{"seid", 5}}, "without rules"}};
  for (const auto& [args, says] : bad) {
    const std::string refused = refusal_of([&] { harness.command("add", args); });
    EXPECT_NE(refused.find(says), std::string::npos) << refused;
  }
  EXPECT_NE(refusal_of([&] { harness.command("delete", Dict{{"seid", 9}}); }), "");
  EXPECT_NE(refusal_of([&] { harness.command("delete", Dict{{"items", List{1, 1}}}); }), "");
  EXPECT_NE(refusal_of([&] { harness.command("modify", Dict{{"seid", 9}}); }), "");
  EXPECT_NE(refusal_of([&] { harness.command("colour", Dict{}); }), "");
  EXPECT_EQ(harness.command("list")["matching"].as_int(), 1);
  EXPECT_EQ(taken(harness, kTestUe), 1U);
}

TEST(SessionTable, UsersMayExchangeAddresses) {
  ModuleHarness harness(
      "session_downlink",
      {{"sessions", List{test_session(1, 100, "10.45.0.2"), test_session(2, 200, "10.45.0.3")}}});
  harness.command(
      "add",
      Dict{{"items", List{test_session(1, 200, "10.45.0.3"), test_session(2, 100, "10.45.0.2")}}});
  EXPECT_EQ(taken(harness, kTestUe) + taken(harness, 0x0a2d0003), 2U);
  const Value row = harness.command("list", Dict{{"ue", "10.45.0.3"}})["sessions"].as_list().at(0);
  EXPECT_EQ(row["seid"].as_int(), 1);
}

TEST(SessionTable, OnlyOneModuleDeclares) {
  Environment env;
  const Dict params{{"sessions", List{test_session()}}};
  ModuleHarness first("session_downlink", params, 1, &env);
  ModuleHarness second("session_enforce", {}, 1, &env);
  EXPECT_EQ(second.module().show()["sessions"].as_int(), 1);
  EXPECT_EQ(second.command("list")["matching"].as_int(), 1);
}

TEST(SessionTable, GoesOnThroughAnApply) {
  Environment env;
  const Dict params{{"sessions", List{test_session(1), test_session(2, 200, "10.45.0.3")}}};
  ModuleHarness before("session_downlink", params, 1, &env);
  before.command("add", test_session(3, 300, "10.45.0.4"));
  before.command("delete", Dict{{"seid", 2}});
  Environment next;
  next.carry_over(env);
  ModuleHarness same("session_downlink", params, 1, &next);
  EXPECT_EQ(taken(same, kTestUe) + taken(same, 0x0a2d0004), 2U);
  EXPECT_EQ(taken(same, 0x0a2d0003), 0U);
  // A new declaration removes the sessions it leaves out; live edits stay.
  Environment last;
  last.carry_over(next);
  const Dict others{
      {"sessions", List{test_session(2, 200, "10.45.0.3"), test_session(5, 500, "10.45.0.5")}}};
  ModuleHarness other("session_downlink", others, 1, &last);
  EXPECT_EQ(taken(other, kTestUe) + taken(other, 0x0a2d0003), 0U);
  EXPECT_EQ(taken(other, 0x0a2d0004) + taken(other, 0x0a2d0005), 2U);
}

TEST(SessionTable, WhatIsSavedStartsAsItWas) {
  Environment env;
  const Dict synthetic{{"count", 3}, {"bearers", 2}, {"ue", "10.45.0.2"}};
  ModuleHarness before("session_downlink", {{"synthetic", synthetic}}, 1, &env);
  before.command("add", test_session(9, 900, "10.45.0.9"));
  before.command("delete", Dict{{"seid", 2}});
  before.command("modify", Dict{{"seid", 3}, {"ue", "10.45.0.33"}});
  ModuleHarness after("session_downlink", before.module().saved_params());
  for (ModuleHarness* one : {&before, &after}) {
    EXPECT_EQ(taken(*one, kTestUe), 1U);
    EXPECT_EQ(taken(*one, 0x0a2d0003), 0U);
    EXPECT_EQ(taken(*one, 0x0a2d0004), 0U);
    EXPECT_EQ(taken(*one, 0x0a2d0009), 1U);
    EXPECT_EQ(taken(*one, 0x0a2d0021), 1U);
    EXPECT_EQ(one->command("list")["matching"].as_int(), 3);
  }
}

// Random edits on the table and on a plain list of sessions give the same lookups.
TEST(SessionTable, ManyEditsLeaveNothingBehind) {
  ModuleHarness harness("session_downlink");
  Rng rng(3);
  std::map<uint32_t, uint32_t> seid_of_ue;
  std::map<uint32_t, uint32_t> ue_of_seid;
  for (uint32_t round = 0; round < 2000; ++round) {
    const uint32_t seid = 1 + rng.below(40);
    const uint32_t ue = 0x0a2d0000 + rng.below(60);
    if (rng.below(3) == 0 && ue_of_seid.contains(seid)) {
      harness.command("delete", Dict{{"seid", seid}});
      seid_of_ue.erase(ue_of_seid[seid]);
      ue_of_seid.erase(seid);
    } else if (!seid_of_ue.contains(ue)) {
      harness.command("add", test_session(seid, 1000 + seid, net::format_ipv4(ue).c_str()));
      if (ue_of_seid.contains(seid)) seid_of_ue.erase(ue_of_seid[seid]);
      ue_of_seid[seid] = ue;
      seid_of_ue[ue] = seid;
    }
    const uint32_t asked = 0x0a2d0000 + rng.below(60);
    ASSERT_EQ(taken(harness, asked), seid_of_ue.contains(asked) ? 1U : 0U) << round;
  }
  const Value shown = harness.module().show();
  EXPECT_EQ(shown["sessions"].as_int(), static_cast<int64_t>(ue_of_seid.size()));
  EXPECT_EQ(shown["rules"].as_int(), static_cast<int64_t>(3 * ue_of_seid.size()));
}

TEST(SessionTable, HoldsAHundredThousandUsers) {
  ModuleHarness harness("session_downlink",
                        {{"synthetic", Dict{{"count", 100'000}, {"bearers", 2}}}});
  for (const uint32_t user : {0U, 1U, 255U, 4096U, 99'999U}) {
    EXPECT_EQ(taken(harness, 0x0a2d0001 + user), 1U) << user;
  }
  EXPECT_EQ(taken(harness, 0x0a2d0001 + 100'000), 0U);
  EXPECT_EQ(harness.module().show()["rules"].as_int(), 400'000);
}

}  // namespace session_table_test
}  // namespace batchplane
