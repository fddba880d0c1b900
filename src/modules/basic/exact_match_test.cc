// SPDX-License-Identifier: BSD-3-Clause
// exact_match_test.cc - rules of any layout against a simple comparison, live edits, and bad input.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "module_harness.h"

namespace batchplane {
namespace {

Dict field(int offset, int size_bytes, Value mask = {}) {
  Dict dict{{"offset", offset}, {"size_bytes", size_bytes}};
  if (!mask.is_null()) dict["mask"] = mask;
  return dict;
}
Dict rule(List values, int gate) { return Dict{{"values", std::move(values)}, {"gate", gate}}; }

Dict three_fields() {
  return {{"fields", List{field(26, 4), field(30, 4), field(36, 2)}},
          {"rules", List{rule({"10.0.0.1", "10.0.0.2", 80}, 1),
                         rule({"10.0.0.1", "10.0.0.2", "0x1bb"}, 2)}}};
}

FrameSpec to_port(uint16_t port) {
  FrameSpec spec;
  spec.port_dst = port;
  return spec;
}

TEST(ExactMatch, ThreeFields) {
  ModuleHarness harness("exact_match", three_fields());
  EXPECT_EQ(harness.n_gates(), 3U);
  const Outcome outcome =
      harness.run({make_frame(to_port(443)), make_frame(to_port(80)), make_frame(to_port(81))});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{2, 1}));
  EXPECT_EQ(outcome.dropped_for("no_match"), 1U);
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

TEST(ExactMatch, DefaultGateTakesTheRest) {
  Dict params = three_fields();
  params["default_gate"] = 5;
  ModuleHarness harness("exact_match", params);
  EXPECT_EQ(harness.n_gates(), 6U);
  EXPECT_EQ(harness.run({make_frame(to_port(81))}).gates(), (std::vector<uint32_t>{5}));
}

TEST(ExactMatch, ShortPacketsAreDroppedNeverRead) {
  Dict params = three_fields();
  params["default_gate"] = 0;
  ModuleHarness harness("exact_match", params);
  std::vector<Bytes> frames;
  for (uint32_t len = 0; len <= 60; ++len) {
    Bytes frame = make_frame(to_port(80));
    frame.resize(len);
    frames.push_back(frame);
  }
  const Outcome outcome = harness.run(frames);
  EXPECT_EQ(outcome.dropped_for("too_short"), 38U);  // lengths 0..37: the last field ends at 38
  EXPECT_EQ(outcome.at(1).size(), 23U);
  EXPECT_EQ(outcome.drops.size() + outcome.outputs.size(), frames.size());
}

TEST(ExactMatch, MasksHideBits) {
  ModuleHarness harness("exact_match",
                        {{"fields", List{field(30, 4, "0xffffff00"), field(22, 1, "0xf0")}},
                         {"rules", List{rule({"10.0.7.0", 0x40}, 3)}}});
  FrameSpec inside;
  inside.ip_dst = 0x0a0007fe;
  inside.ttl = 0x4b;
  FrameSpec outside = inside;
  outside.ttl = 0x3b;
  const Outcome outcome = harness.run({make_frame(inside), make_frame(outside)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{3}));
  EXPECT_EQ(outcome.dropped_for("no_match"), 1U);
}

// Random layouts and packets against a direct evaluation of the rules.
TEST(ExactMatch, AgreesWithPlainComparison) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const uint32_t n_fields = 1 + rng.below(8);
    List fields;
    std::vector<std::pair<uint32_t, uint32_t>> places;
    for (uint32_t f = 0; f < n_fields; ++f) {
      places.emplace_back(rng.below(40), 1 + rng.below(7));
      fields.push_back(
          field(static_cast<int>(places[f].first), static_cast<int>(places[f].second)));
    }
    std::vector<Bytes> frames;
    for (int i = 0; i < 64; ++i) {
      Bytes frame(20 + rng.below(60));
      for (uint8_t& byte : frame) byte = static_cast<uint8_t>(rng.below(2));
      frames.push_back(frame);
    }
    const auto values_of = [&](const Bytes& frame) {
      List values;
      for (const auto& [offset, size] : places) {
        if (offset + size > frame.size()) return List{};
        int64_t value = 0;
        for (uint32_t b = 0; b < size; ++b) value = value << 8 | frame[offset + b];
        values.emplace_back(value);
      }
      return values;
    };
    List rules;
    std::vector<List> known;
    for (int i = 0; i < 32; ++i) {
      const List values = values_of(frames[static_cast<size_t>(i)]);
      if (values.empty() || std::ranges::find(known, values) != known.end()) continue;
      rules.push_back(rule(values, static_cast<int>(known.size())));
      known.push_back(values);
    }
    ModuleHarness harness("exact_match", {{"fields", fields}, {"rules", rules}});
    const Outcome outcome = harness.run(frames);
    std::vector<uint32_t> expected;
    uint32_t n_short = 0;
    for (const Bytes& frame : frames) {
      const List values = values_of(frame);
      const auto it = std::ranges::find(known, values);
      if (values.empty()) {
        ++n_short;
      } else if (it != known.end()) {
        expected.push_back(static_cast<uint32_t>(it - known.begin()));
      }
    }
    EXPECT_EQ(outcome.gates(), expected) << "seed " << seed;
    EXPECT_EQ(outcome.dropped_for("too_short"), n_short) << "seed " << seed;
  }
}

TEST(ExactMatch, LiveEdits) {
  ModuleHarness harness("exact_match", three_fields(), 4);
  const Bytes frame = make_frame(to_port(8080));
  EXPECT_EQ(harness.run({frame}).dropped_for("no_match"), 1U);
  harness.command("add", rule({"10.0.0.1", "10.0.0.2", 8080}, 3));
  EXPECT_EQ(harness.run({frame}).gates(), (std::vector<uint32_t>{3}));
  harness.command("add", rule({"10.0.0.1", "10.0.0.2", 8080}, 0));
  EXPECT_EQ(harness.run({frame}).gates(), (std::vector<uint32_t>{0}));
  harness.command("delete", Dict{{"values", List{"10.0.0.1", "10.0.0.2", 8080}}});
  EXPECT_EQ(harness.run({frame}).dropped_for("no_match"), 1U);
  harness.command("replace", Dict{{"items", List{rule({"10.0.0.1", "10.0.0.2", 8080}, 1)}}});
  EXPECT_EQ(harness.run({frame, make_frame(to_port(80))}).gates(), (std::vector<uint32_t>{1}));
  const List listed = harness.command("list")["rules"].as_list();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0]["gate"].as_int(), 1);
  EXPECT_EQ(harness.module().saved_params().at("rules").as_list(), listed);
}

TEST(ExactMatch, RefusedEditsChangeNothing) {
  ModuleHarness harness("exact_match", three_fields(), 3);
  const Value before = harness.command("list");
  const List unknown{1, 2, 3};
  EXPECT_THROW(harness.command("add", rule({"10.0.0.1", "10.0.0.2", 1}, 3)), ConfigError);
  EXPECT_THROW(harness.command("delete", Dict{{"values", unknown}}), ConfigError);
  EXPECT_THROW(harness.command("add", rule({1, 2}, 0)), ConfigError);
  EXPECT_THROW(harness.command("replace", List{rule({1, 2, 3}, 0), rule({1, 2, 3}, 1)}),
               ConfigError);
  EXPECT_THROW(harness.command("learn", Dict{}), ConfigError);
  EXPECT_EQ(harness.command("list"), before);
}

TEST(ExactMatch, HoldsSixtyFourThousandRules) {
  List rules;
  for (int i = 0; i < 65536; ++i) rules.push_back(rule({i % 256, i / 256}, i % 100));
  ModuleHarness harness("exact_match",
                        {{"fields", List{field(0, 8), field(8, 8)}}, {"rules", rules}});
  std::vector<Bytes> frames;
  std::vector<uint32_t> expected;
  for (int i = 0; i < 65536; i += 257) {
    Bytes frame(60);
    frame[7] = static_cast<uint8_t>(i % 256);
    frame[15] = static_cast<uint8_t>(i / 256);
    frames.push_back(frame);
    expected.push_back(static_cast<uint32_t>(i % 100));
  }
  EXPECT_EQ(harness.run(frames).gates(), expected);
}

TEST(ExactMatch, SaysWhatIsWrong) {
  const auto refuses = [](const Dict& params, const std::string& words) {
    try {
      ModuleHarness harness("exact_match", params);
      ADD_FAILURE() << "accepted: " << words;
    } catch (const ConfigError& error) {
      EXPECT_NE(error.line().find(words), std::string::npos) << error.line();
      EXPECT_FALSE(error.fix().empty()) << error.line();
    }
  };
  refuses({{"fields", List{}}}, "0 fields");
  refuses({{"fields", List(9, Value(field(0, 1)))}}, "9 fields");
  refuses({{"fields", List{field(0, 9)}}}, "size_bytes");
  refuses({{"fields", List{field(-1, 1)}}}, "offset");
  refuses({{"fields", List{field(0, 1)}}, {"rules", List{rule({256}, 0)}}}, "more than 1 bytes");
  refuses({{"fields", List{field(0, 1, 0x0f)}}, {"rules", List{rule({0x10}, 0)}}},
          "outside the field's mask");
  refuses({{"fields", List{field(0, 4)}}, {"rules", List{rule({"10.0.0"}, 0)}}}, "no value");
  refuses({{"fields", List{field(0, 4)}}, {"rules", List{rule({1, 2}, 0)}}},
          "2 values for 1 fields");
  refuses({{"fields", List{field(0, 4)}}, {"rules", List{rule({1}, 0), rule({1}, 1)}}}, "rules[1]");
  refuses({{"fields", List{field(0, 4)}}, {"rules", List{rule({1}, 4096)}}}, "gate 4096");
}

}  // namespace
}  // namespace batchplane
