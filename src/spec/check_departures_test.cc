// SPDX-License-Identifier: BSD-3-Clause
// check_departures_test.cc - when `check` warns that nothing keeps the departure times of a pace.
#include <gtest/gtest.h>

#include "spec/check.h"
#include "spec/doors.h"

namespace batchplane {
namespace check_departures_test {

// in -> pace -> null -> link -> out
PipelineSpec paced(const Dict& link) {
  PipelineSpec spec;
  spec.modules = {{"in", "port_in", {}},
                  {"pace", "pace", {}},
                  {"null", "null", {}},
                  {"link", "egress", link},
                  {"out", "port_out", {}}};
  spec.edges = {
      {"in", "0", "pace"}, {"pace", "0", "null"}, {"null", "0", "link"}, {"link", "0", "out"}};
  return spec;
}

std::string warnings(const PipelineSpec& spec) {
  std::string lines;
  for (const ConfigError& warning : warnings_of(spec, {})) lines += warning.line() + "\n";
  return lines;
}

constexpr const char* kIgnored =
    "modules.pace: the departure times that 'pace' sets are ignored: no egress with discipline: "
    "calendar is behind it";

TEST(DepartureWarning, NamesTheSchedulerThatIgnoresThem) {
  const std::string line = std::string(kIgnored) + " (set discipline: calendar for 'link')\n";
  EXPECT_EQ(warnings(paced({{"discipline", "drr"}})), line);
  EXPECT_EQ(warnings(paced({})), line);
  EXPECT_EQ(warnings(paced({{"discipline", "calendar"}})), "");
}

TEST(DepartureWarning, LooksOnlyBehindThePace) {
  PipelineSpec spec = paced({{"discipline", "calendar"}});
  spec.edges = {
      {"in", "0", "link"}, {"link", "0", "pace"}, {"pace", "0", "null"}, {"null", "0", "out"}};
  EXPECT_EQ(warnings(spec),
            std::string(kIgnored) + " (put an egress with discipline: calendar behind it)\n");
}

// The times stay with a packet: a calendar behind another scheduler keeps them, by whatever gate
// packets come there. Other branches and circles do not matter.
TEST(DepartureWarning, IsNotGivenIfAnySchedulerBehindKeepsThem) {
  PipelineSpec spec = paced({{"discipline", "tree"}});
  spec.modules.push_back({"later", "egress", {{"discipline", "calendar"}}});
  spec.edges.push_back({"link", "1", "pace"});
  EXPECT_NE(warnings(spec), "");
  spec.edges.push_back({"null", "drop", "later"});
  EXPECT_EQ(warnings(spec), "");
}

TEST(DepartureWarning, KnowsDoorsOfSchedulers) {
  for (const bool keeps : {false, true}) {
    PipelineSpec spec = paced({{"discipline", keeps ? "calendar" : "fifo"}});
    spec.workers = {{"w0"}, {"w1"}};
    spec.modules.push_back({.name = "other", .kind = "port_in", .worker = "w1"});
    spec.edges.insert(spec.edges.begin(), {"other", "0", "link"});
    Kinds kinds;
    kinds.modules["egress"] = {.shape = Shape::kQueue};
    add_doors(spec, kinds);
    ASSERT_EQ(spec.modules.back().door_of, "link");
    EXPECT_EQ(warnings(spec),
              keeps ? "" : std::string(kIgnored) + " (set discipline: calendar for 'link')\n");
  }
}

TEST(DepartureWarning, OfSeveralNamesOnlyThoseWithout) {
  PipelineSpec spec = paced({{"discipline", "calendar"}});
  spec.modules.push_back({"stray", "pace", {}});
  spec.edges.push_back({"stray", "0", "nowhere"});
  const std::string found = warnings(spec);
  EXPECT_NE(found.find("modules.stray"), std::string::npos) << found;
  EXPECT_EQ(found.find("modules.pace"), std::string::npos) << found;
}

}  // namespace check_departures_test
}  // namespace batchplane
