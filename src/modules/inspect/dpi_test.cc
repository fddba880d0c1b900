// SPDX-License-Identifier: BSD-3-Clause
// dpi_test.cc - rules in all their forms, verdicts on packets, live edits, and files with errors.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "module_harness.h"
#include "modules/inspect/dpi_rule.h"

namespace batchplane {
namespace {

Bytes frame_of(const std::string& payload, uint8_t proto = net::kProtoUdp) {
  const uint32_t header_bytes = proto == net::kProtoTcp ? net::kTcpBytes : net::kUdpBytes;
  const auto len = static_cast<uint32_t>(payload.size());
  Bytes frame = make_frame({.proto = proto, .len_bytes = 34 + header_bytes + len});
  if (proto == net::kProtoTcp) frame[34 + 12] = net::Tcp::kPlain;
  std::copy(payload.begin(), payload.end(), frame.begin() + 34 + header_bytes);
  return frame;
}

Dict rule_of(int64_t id, const Value& content, const std::string& action = "alert") {
  return {{"id", id}, {"content", content}, {"action", action}};
}
Dict params_of(const List& rules, const std::string& engine = "aho_corasick") {
  return {{"rules", rules}, {"engine", engine}};
}

class DpiEngine : public testing::TestWithParam<std::string> {};

TEST_P(DpiEngine, ActsAsRulesSay) {
  Dict mark = rule_of(3, "third", "mark");
  mark["mark"] = 77;
  Dict nocase = rule_of(4, "FouRth");
  nocase["nocase"] = true;
  Dict tcp = rule_of(5, "fifth", "drop");
  tcp["proto"] = "tcp";
  ModuleHarness dpi("dpi",
                    params_of({rule_of(1, "first"), rule_of(2, List{"second", "|00 ff|"}, "drop"),
                               mark, nocase, tcp},
                              GetParam()),
                    2);
  const Outcome outcome =
      dpi.run({frame_of("nothing"), frame_of("a first one"), frame_of("second alone"),
               frame_of(std::string("\0\xff second", 9)), frame_of("the third"),
               frame_of("a FOURTH"), frame_of("fifth"), frame_of("fifth", net::kProtoTcp),
               frame_of("First"), frame_of("third, first")});
  EXPECT_EQ(outcome.dropped_for("dpi_match"), 2U);
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{0, 1, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(outcome.outputs[3].mark, 77U);
  EXPECT_EQ(outcome.outputs[7].mark, 77U);
  EXPECT_EQ(outcome.outputs[0].mark, 0U);
  EXPECT_EQ(dpi.module().show()["matches"].as_int(), 6);
}

TEST_P(DpiEngine, AlertsPassWhereNobodyTakesThem) {
  ModuleHarness dpi("dpi", params_of({rule_of(1, "x")}, GetParam()), 1);
  EXPECT_EQ(dpi.run({frame_of("x")}).at(0).size(), 1U);
  EXPECT_EQ(dpi.command("hits")["hits"].as_list()[0]["hits"].as_int(), 1);
}

TEST_P(DpiEngine, LooksAtThePayloadAlone) {
  // The headers contain zeros, the payload does not.
  ModuleHarness payload("dpi", params_of({rule_of(1, "|00 00|")}, GetParam()), 2);
  EXPECT_EQ(payload.run({frame_of("abc")}).gates(), std::vector<uint32_t>{0});
  Dict params = params_of({rule_of(1, "|00 00|")}, GetParam());
  params["scan"] = "frame";
  ModuleHarness frame("dpi", params, 2);
  EXPECT_EQ(frame.run({frame_of("abc")}).gates(), std::vector<uint32_t>{1});
}

TEST_P(DpiEngine, EditsAreLive) {
  ModuleHarness dpi("dpi", params_of({rule_of(1, "one")}, GetParam()), 2);
  const auto gates = [&] { return dpi.run({frame_of("one"), frame_of("two")}).gates(); };
  EXPECT_EQ(gates(), (std::vector<uint32_t>{1, 0}));
  dpi.command("add", rule_of(2, "two"));
  EXPECT_EQ(gates(), (std::vector<uint32_t>{1, 1}));
  dpi.command("delete", Dict{{"id", 1}});
  EXPECT_EQ(gates(), (std::vector<uint32_t>{0, 1}));
  EXPECT_NE(refusal_of([&] {
              dpi.command("add", Dict{{"items", List{rule_of(3, "three"), rule_of(4, "|0|")}}});
            }),
            "");
  EXPECT_EQ(dpi.module().show()["rules"].as_int(), 1);
  const Value saved(dpi.module().saved_params());
  dpi.command("replace", Dict{{"rules", List{rule_of(9, "one")}}});
  EXPECT_EQ(gates(), (std::vector<uint32_t>{1, 0}));
  dpi.command("replace", saved);
  EXPECT_EQ(gates(), (std::vector<uint32_t>{0, 1}));
  // Rules that are kept keep their counts.
  ModuleHarness later("dpi", params_of({rule_of(2, "two")}, GetParam()), 2);
  later.module().inherit(dpi.module());
  later.module().adopt(dpi.module());
  EXPECT_EQ(later.module().show()["matches"], dpi.module().show()["matches"]);
  EXPECT_EQ(later.command("hits"), dpi.command("hits"));
  EXPECT_EQ(later.run({frame_of("two")}).gates(), std::vector<uint32_t>{1});
  EXPECT_EQ(later.command("hits"), dpi.command("hits")) << "one count, whoever raises it";
}

INSTANTIATE_TEST_SUITE_P(Both, DpiEngine, testing::Values("aho_corasick", "hyperscan"),
                         [](const auto& engine) { return engine.param; });

TEST(Dpi, ExpressionsNeedHyperscan) {
  Dict rule{{"id", 1}, {"pcre", "/a[0-9]+b$/i"}, {"action", "drop"}};
  EXPECT_NE(refusal_of([&] { ModuleHarness("dpi", params_of({rule})); }).find("hyperscan"),
            std::string::npos);
  ModuleHarness dpi("dpi", params_of({rule}, "hyperscan"), 2);
  EXPECT_EQ(
      dpi.run({frame_of("xA12B"), frame_of("a12b."), frame_of("ab")}).dropped_for("dpi_match"), 1U);
  rule["pcre"] = "/(a/";
  EXPECT_NE(refusal_of([&] { ModuleHarness("dpi", params_of({rule}, "hyperscan")); }).find("(a"),
            std::string::npos);
}

TEST(Dpi, ContentsAreWrittenAsTheyAreRead) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(dpi::parse_content(dpi::format_content(all), "here"), all);
  EXPECT_EQ(dpi::parse_content("a|3b 7C|\\\"b", "here"), "a;|\"b");
}

class DpiFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("bp_dpi_" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove(path_); }
  Dict params(const std::string& text, const char* key = "rules_file") const {
    std::ofstream(path_) << text;
    return {{key, path_.string()}};
  }
  [[nodiscard]] std::string refusal(const std::string& text) const {
    const Dict given = params(text);
    return refusal_of([&] { ModuleHarness("dpi", given); });
  }

  std::filesystem::path path_;
};

TEST_F(DpiFile, TakesRulesInSnortsForm) {
  ModuleHarness dpi("dpi",
                    params("# a comment\n"
                           "alert udp any any -> any any (msg:\"a; b\"; content:\"GET |0d 0a|\"; "
                           "nocase; content:\"x\\;y\"; sid:7; rev:2;)\n\n"
                           "drop tcp any any -> any any (msg:\"c\"; content:\"bad\"; sid:8;)\n"),
                    2);
  const Outcome outcome = dpi.run({frame_of("get \r\n x;y"), frame_of("get \r\n"), frame_of("bad"),
                                   frame_of("bad", net::kProtoTcp)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 0, 0}));
  EXPECT_EQ(outcome.dropped_for("dpi_match"), 1U);
  EXPECT_EQ(dpi.command("hits")["hits"].as_list()[0]["message"].as_string(), "a; b");
}

TEST_F(DpiFile, IsReadAgainOnReload) {
  Dict given = params("one\n# no word\ntwo\n", "words_file");
  given["words_action"] = "drop";
  ModuleHarness dpi("dpi", given, 2);
  EXPECT_EQ(dpi.run({frame_of("ONE"), frame_of("no word")}).dropped_for("dpi_match"), 1U);
  params("three\n", "words_file");
  dpi.command("reload");
  EXPECT_EQ(dpi.run({frame_of("one"), frame_of("three")}).dropped_for("dpi_match"), 1U);
  std::filesystem::remove(path_);
  EXPECT_NE(refusal_of([&] { dpi.command("reload"); }), "");
  EXPECT_EQ(dpi.run({frame_of("three")}).dropped_for("dpi_match"), 1U);
}

TEST_F(DpiFile, IsRefusedInALine) {
  const auto says = [&](const std::string& text, const std::string& part) {
    const std::string line = refusal(text);
    EXPECT_NE(line.find(part), std::string::npos) << text << ": " << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  };
  const std::string head = "alert ip any any -> any any ";
  says("\nalert\n", ":2");
  says(head + "(content:\"a\"; sid:1;) x\n", ":1");
  says("shout ip any any -> any any (content:\"a\"; sid:1;)\n", "shout");
  says("alert gre any any -> any any (content:\"a\"; sid:1;)\n", "gre");
  says("alert ip 10.0.0.0/8 any -> any any (content:\"a\"; sid:1;)\n", "ignore_headers");
  says(head + "(content:\"a\"; sid:1)\n", "does not end");
  says(head + "(content:\"a; sid:1;)\n", "does not end");
  says(head + "(content:\"a\";)\n", "no number");
  says(head + "(content:\"a\"; sid:x;)\n", "sid");
  says(head + "(sid:1;)\n", "looks for nothing");
  says(head + "(nocase; content:\"a\"; sid:1;)\n", "nocase");
  says(head + "(content:!\"a\"; sid:1;)\n", "must not be there");
  says(head + "(content:\"a|1|\"; sid:1;)\n", "byte");
  says(head + "(content:\"a|xx|\"; sid:1;)\n", "hexadecimal");
  says(head + "(content:\"a\"; within:5; sid:1;)\n", "within");
  says(head + "(pcre:\"/a/U\"; sid:1;)\n", "'U'");
  says(head + "(content:\"a\"; sid:1;)\n" + head + "(content:\"b\"; sid:1;)\n", ":2");
  Dict given = params("alert tcp $HOME any -> any [80,443] (content:\"a\"; sid:1;)\n");
  given["ignore_headers"] = true;
  EXPECT_EQ(refusal_of([&] { ModuleHarness("dpi", given); }), "");
}

}  // namespace
}  // namespace batchplane
