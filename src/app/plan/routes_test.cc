// SPDX-License-Identifier: BSD-3-Clause
// routes_test.cc - ways of single packets: splits, drops, queues, modules with state, frames.
#include "app/plan/routes.h"

#include <gtest/gtest.h>

#include "app/wire/json_value.h"
#include "app/wire/messages.h"
#include "core/module/kind.h"
#include "spec/config_json.h"
#include "spec/doors.h"

namespace batchplane::app {
namespace {

PipelineSpec spec_of(const std::string& modules, const std::string& edges,
                     const std::string& more = "") {
  std::vector<ConfigError> errors;
  const std::string text = R"({"version": 1, "name": "t", "modules": {)" + modules +
                           R"(}, "edges": [)" + edges + "]" + more + "}";
  PipelineSpec spec = spec_from_value(parse_json(text, "test"), errors);
  for (const ConfigError& error : errors) ADD_FAILURE() << error.line();
  return spec;
}

std::string edge(const std::string& from, const std::string& gate, const std::string& to) {
  return R"({"from": ")" + from + R"(", "gate": )" + gate + R"(, "to": ")" + to + R"("})";
}

constexpr const char* kSource = R"("in": {"kind": "source", "params": {"flows": [{"count": 2}]}})";
constexpr const char* kSink = R"({"kind": "sink", "params": {}})";

// The first error; empty when there is none.
std::string error_of(const PipelineSpec& spec, const Value& frames = {}) {
  const auto errors = errors_of([&] { (void)find_routes(spec, frames); });
  return errors.empty() ? "" : errors.front().line();
}

TEST(Routes, EachFlowTakesTheGateThatItsAddressesChoose) {
  const PipelineSpec spec = spec_of(
      R"("in": {"kind": "source", "params": {"flows": [
           {"name": "a", "dst_ip": "20.0.0.1"}, {"name": "b", "dst_ip": "20.0.1.1"},
           {"name": "lost", "dst_ip": "99.0.0.1"}]}},
         "lookup": {"kind": "ipv4_lookup", "params": {"routes": [
           {"prefix": "20.0.0.0/24", "gate": 0}, {"prefix": "20.0.1.0/24", "gate": 1}]}},
         "out_0": {"kind": "sink", "params": {}}, "out_1": {"kind": "sink", "params": {}})",
      edge("in", "0", "lookup") + "," + edge("lookup", "0", "out_0") + "," +
          edge("lookup", "1", "out_1"),
      R"(, "flows": [{"name": "first", "path": ["in", "lookup", "out_0"]}])");
  const Value found = find_routes(spec, {});
  const List& routes = found["routes"]["in"].as_list();
  ASSERT_EQ(routes.size(), 3U);
  EXPECT_EQ(routes[0]["gates"], Value(Dict{{"lookup", 0}}));
  EXPECT_EQ(routes[0]["ways"].as_list().at(0)["flow"], Value("first"));
  EXPECT_EQ(routes[1]["gates"], Value(Dict{{"lookup", 1}}));
  EXPECT_EQ(routes[1]["ways"].as_list().at(0)["flow"], Value("other"));
  EXPECT_EQ(routes[2]["gates"], Value(Dict{{"lookup", "drop"}}));
  EXPECT_EQ(routes[2]["ways"].as_list().at(0)["end"], Value("lookup"));
  EXPECT_EQ(routes[2]["ways"].as_list().at(0)["drop_reason"], Value("no_route"));
  EXPECT_FALSE(routes[2]["ways"].as_list().at(0).has("flow"));
}

// Indices are flows of the source, numbers are flows of the scheduler.
TEST(Routes, FlowsThatGoTheSameWayAreOneRow) {
  const PipelineSpec spec = spec_of(
      R"("in": {"kind": "source", "params": {"flows": [
           {"count": 2, "dst_ip": "20.0.0.1", "src_ip_step": 0}, {"dst_ip": "20.0.1.1"},
           {"dst_ip": "20.0.0.2"}]}},
         "lookup": {"kind": "ipv4_lookup", "params": {"routes": [
           {"prefix": "20.0.0.0/24", "gate": 0}, {"prefix": "20.0.1.0/24", "gate": 1}]}},
         "note": {"kind": "set_meta", "params": {"mark": 3}},
         "link": {"kind": "egress", "params": {"flows": [{"flow": 3}]}},
         "out": {"kind": "sink", "params": {}}, "gone": {"kind": "sink", "params": {}})",
      edge("in", "0", "lookup") + "," + edge("lookup", "0", "note") + "," +
          edge("note", "0", "link") + "," + edge("link", "0", "out") + "," +
          edge("lookup", "1", "gone"));
  const Value found = find_routes(spec, {}, RoutesAre::kGrouped);
  const List& rows = found["routes"]["in"].as_list();
  ASSERT_EQ(rows.size(), 2U) << to_json(found);
  const size_t scheduled = rows[0]["scheduled"].as_dict().empty() ? 1 : 0;
  EXPECT_EQ(rows[scheduled]["flows"], Value(List{0, 1, 3}));
  EXPECT_EQ(rows[scheduled]["scheduled"], Value(Dict{{"link", List{3, 3, 3}}}));
  EXPECT_EQ(rows[1 - scheduled]["flows"], Value(List{2}));
  EXPECT_EQ(rows[1 - scheduled]["ways"].as_list().at(0)["path"],
            Value(List{"in", "lookup", "gone"}));
  Dict link = found["schedulers"]["link"].as_dict();
  const Value bounds = std::exchange(link["bounds"], {});
  link.erase("bounds");
  EXPECT_EQ(link, find_routes(spec, {})["schedulers"]["link"].as_dict());
  ASSERT_EQ(bounds.as_list().size(), 1U);
  EXPECT_EQ(bounds.as_list()[0]["flow"].as_int(), 3);
  EXPECT_EQ(bounds.as_list()[0]["why_not"].as_string(), "rate_bps is 0: say what the link carries");
}

// A queue has an entry for each worker that fills it, and none for others.
TEST(Routes, GoThroughQueuesThatOtherWorkersFill) {
  PipelineSpec spec =
      spec_of(R"("a": {"kind": "source", "params": {}, "worker": "w1"},
                 "b": {"kind": "source", "params": {}, "worker": "w2"},
                 "q": {"kind": "queue", "params": {}, "worker": "w0"}, "x": )" +
                  std::string(kSink),
              edge("a", "0", "q") + "," + edge("b", "0", "q") + "," + edge("q", "0", "x"),
              R"(, "workers": [{"name": "w0"}, {"name": "w1"}, {"name": "w2"}],
                 "flows": [{"name": "fa", "path": ["a", "q", "x"]},
                           {"name": "fb", "path": ["b", "q", "x"]}])");
  add_doors(spec, module_kind_facts());
  const Value found = find_routes(spec, {});
  for (const char* input : {"a", "b"}) {
    const Value& way = found["routes"][input].as_list().at(0)["ways"].as_list().at(0);
    EXPECT_EQ(way["flow"], Value(std::string("f") + input));
    EXPECT_EQ(way["end"], Value("x"));
  }
}

TEST(Routes, BehindABlindSplitEveryBranchIsFollowedAndMergedOnesOnce) {
  const PipelineSpec spec =
      spec_of(std::string(kSource) +
                  R"(, "a": {"kind": "split", "params": {"gates": 3, "mode": "weighted",
                 "weights": [3, 1, 0]}},
           "work": {"kind": "cost", "params": {"cost_per_batch_ns": 1000000000}},
           "join": {"kind": "merge", "params": {}},
           "b": {"kind": "split", "params": {"gates": 2}}, "x": )" +
                  kSink + R"(, "y": )" + kSink,
              edge("in", "0", "a") + "," + edge("a", "0", "work") + "," +
                  edge("work", "0", "join") + "," + edge("a", "1", "join") + "," +
                  edge("join", "0", "b") + "," + edge("b", "0", "x") + "," + edge("b", "1", "y"));
  const Value found = find_routes(spec, {});
  const Value& route = found["routes"]["in"].as_list().at(0);
  EXPECT_EQ(route["gates"], Value(Dict{}));
  EXPECT_EQ(found["free"]["a"]["weights"], Value(List{3.0, 1.0, 0.0}));
  EXPECT_EQ(found["free"]["b"]["weights"], Value(List{1.0, 1.0}));
  // x and y once each, although two branches lead there, and the unconnected gate.
  const List& ways = route["ways"].as_list();
  ASSERT_EQ(ways.size(), 3U);
  EXPECT_EQ(ways[0]["path"], Value(List{"in", "a", "work", "join", "b", "x"}));
  EXPECT_EQ(ways[1]["end"], Value("y"));
  EXPECT_EQ(ways[2]["end"], Value("a"));
  EXPECT_EQ(ways[2]["drop_reason"], Value("unconnected_gate"));
}

TEST(Routes, WhatGoesRoundByChanceLeavesAtLast) {
  const std::string modules = std::string(kSource) +
                              R"(, "a": {"kind": "merge", "params": {}},
           "dice": {"kind": "split", "params": {"gates": 2, "mode": "random"}},
           "back": {"kind": "queue", "params": {}}, "last": )";
  const std::string round = edge("in", "0", "a") + "," + edge("a", "0", "dice") + "," +
                            edge("dice", "0", "back") + "," + edge("back", "0", "a") + "," +
                            edge("dice", "1", "last");
  const Value found = find_routes(spec_of(modules + kSink, round), {});
  EXPECT_EQ(found["warnings"], Value(List{}));
  const List& ways = found["routes"]["in"].as_list().at(0)["ways"].as_list();
  ASSERT_EQ(ways.size(), 1U);
  EXPECT_EQ(ways[0]["path"], Value(List{"in", "a", "dice", "last"}));
  // All of its gates lead back.
  const std::string queue = R"({"kind": "queue", "params": {}})";
  const Value caught =
      find_routes(spec_of(modules + queue, round + "," + edge("last", "0", "a")), {});
  ASSERT_EQ(caught["warnings"].as_list().size(), 1U);
  EXPECT_NE(caught["warnings"].as_list()[0].as_string().find("never leave"), std::string::npos);
  EXPECT_EQ(caught["routes"]["in"].as_list().at(0)["ways"].as_list().size(), 2U);
}

TEST(Routes, DropsGoByTheirGateAndOnThroughAQueue) {
  const PipelineSpec spec = spec_of(
      R"("in": {"kind": "source", "params": {"flows": [{"name": "old", "ttl": 1}, {"name": "new"}]}},
         "ttl": {"kind": "ttl", "params": {}}, "errors": {"kind": "queue", "params": {}},
         "tell": {"kind": "counter", "params": {}}, "out": {"kind": "sink", "params": {}},
         "told": {"kind": "sink", "params": {}})",
      edge("in", "0", "ttl") + "," + edge("ttl", "0", "out") + "," +
          edge("ttl", "\"drop\"", "errors") + "," + edge("errors", "0", "tell") + "," +
          edge("tell", "0", "told"),
      R"(, "flows": [{"name": "late", "path": ["in", "ttl:drop", "errors", "tell", "told"]}])");
  const Value found = find_routes(spec, {});
  const List& routes = found["routes"]["in"].as_list();
  EXPECT_EQ(routes[0]["gates"], Value(Dict{{"ttl", "drop"}}));
  EXPECT_EQ(routes[0]["ways"].as_list().at(0)["path"],
            Value(List{"in", "ttl", "errors", "tell", "told"}));
  EXPECT_EQ(routes[0]["ways"].as_list().at(0)["flow"], Value("late"));
  EXPECT_EQ(routes[1]["gates"], Value(Dict{}));
  EXPECT_EQ(routes[1]["ways"].as_list().at(0)["end"], Value("out"));
}

TEST(Routes, EachFlowComesFirstToModulesThatRemember) {
  // The bucket holds one packet, and takes ten minutes to fill.
  const PipelineSpec spec = spec_of(
      R"("in": {"kind": "source", "params": {"flows": [
           {"count": 40, "src_ip": "10.0.0.1", "src_ip_step": 1}]}},
         "police": {"kind": "policer", "params": {"cir_bps": 8, "cbs_bytes": 64,
           "ebs_bytes": 0, "red_action": "drop"}},
         "nat": {"kind": "napt", "params": {"external": ["198.18.0.1"], "max_connections": 64}},
         "out": {"kind": "sink", "params": {}}, "back": {"kind": "sink", "params": {}})",
      edge("in", "0", "police") + "," + edge("police", "0", "nat") + "," +
          edge("nat", "\"outside\"", "out") + "," + edge("nat", "\"inside\"", "back"));
  const Value found = find_routes(spec, {});
  for (const Value& route : found["routes"]["in"].as_list()) {
    ASSERT_EQ(route["ways"].as_list().at(0)["end"], Value("out")) << to_json(route);
    EXPECT_EQ(route["gates"], Value(Dict{{"nat", 0}}));
  }
}

constexpr const char* kRouterModules =
    R"("in": {"kind": "port_in", "params": {"port": "lan", "interface": "lan"}},
       "lookup": {"kind": "ipv4_lookup", "params": {"table": "main", "interfaces": true,
         "routes": [{"prefix": "0.0.0.0/0", "via": "10.0.2.9"}]}},
       "next": {"kind": "neighbour", "params": {"table": "main", "hold_pkts": 1, "neighbours": [
         {"interface": "wan", "address": "10.0.2.9", "mac": "02:00:00:00:00:09"}]}},
       "out_lan": {"kind": "port_out", "params": {"port": "lan"}},
       "out_wan": {"kind": "port_out", "params": {"port": "wan"}},
       "own": {"kind": "drop", "params": {}})";
constexpr const char* kRouterPorts =
    R"(, "ports": {"lan": {"kind": "ring", "params": {"size_pkts": 2}},
                   "wan": {"kind": "ring", "params": {"size_pkts": 2}}},
       "interfaces": [{"name": "lan", "port": "lan", "addresses": ["10.0.1.1/24"]},
                      {"name": "wan", "port": "wan", "addresses": ["10.0.2.1/24"]}],
       "generators": [{"name": "load", "port": "lan", "params": {"flows": [
         {"name": "far", "count": 5, "dst_ip": "99.0.0.1"},
         {"name": "near", "count": 2, "dst_ip": "10.0.2.77", "dst_ip_step": 0},
         {"name": "own", "dst_ip": "10.0.1.1"}]}}])";

PipelineSpec router() {
  return spec_of(kRouterModules,
                 edge("in", "0", "lookup") + "," + edge("lookup", "\"forward\"", "next") + "," +
                     edge("lookup", "\"local\"", "own") + "," + edge("next", "0", "out_lan") + "," +
                     edge("next", "1", "out_wan"),
                 kRouterPorts);
}

TEST(Routes, ANeighbourThatIsNotKnownKeepsThePacketAndSaysSo) {
  const Value found = find_routes(router(), {});
  const List& routes = found["routes"]["load"].as_list();
  ASSERT_EQ(routes.size(), 8U);
  // Declared neighbours are known; more packets leave by the port than its ring could hold.
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(routes[i]["ways"].as_list().at(0)["end"], Value("out_wan")) << to_json(routes[i]);
  }
  // Each counts as the first to wait, though only one may wait.
  for (size_t i = 5; i < 7; ++i) {
    EXPECT_EQ(routes[i]["gates"], Value(Dict{{"lookup", 0}}));
    EXPECT_EQ(routes[i]["ways"].as_list().at(0)["kept_by"], Value("next"));
  }
  EXPECT_EQ(routes[7]["ways"].as_list().at(0)["drop_reason"], Value("discarded"));
  ASSERT_EQ(found["warnings"].as_list().size(), 1U);
  EXPECT_EQ(found["warnings"].as_list().at(0),
            Value("'next' keeps packets until something comes that does not come here "
                  "(load: near_0 and 1 more)"));
}

TEST(Routes, CopiesAreNotFollowedAndUnreadPortsAreTold) {
  const PipelineSpec spec =
      spec_of(std::string(kSource) + R"(, "copy": {"kind": "mirror", "params": {}}, "a": )" +
                  kSink + R"(, "b": )" + kSink,
              edge("in", "0", "copy") + "," + edge("copy", "0", "a") + "," + edge("copy", "1", "b"),
              R"(, "ports": {"p": {"kind": "ring", "params": {}}},
          "generators": [{"name": "idle", "port": "p", "params": {}}])");
  const Value found = find_routes(spec, {});
  EXPECT_EQ(found["routes"]["in"].as_list().at(1)["gates"], Value(Dict{{"copy", 0}}));
  EXPECT_EQ(found["routes"]["idle"].as_list().at(0)["ways"], Value(List{}));
  const List& warnings = found["warnings"].as_list();
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_NE(warnings[0].as_string().find("no port_in reads port 'p'"), std::string::npos);
  EXPECT_NE(warnings[1].as_string().find("'copy' sends more packets"), std::string::npos);
}

TEST(Routes, OfAPacketThatIsCutTheFirstPartIsFollowed) {
  // The translator drops fragments whose first fragment it has not seen.
  const PipelineSpec spec = spec_of(
      R"("in": {"kind": "source", "params": {"size_bytes": 1518}},
         "cut": {"kind": "fragment", "params": {"mtu_bytes": 576}},
         "nat": {"kind": "napt", "params": {"external": ["198.18.0.1"], "max_connections": 64}},
         "out": {"kind": "sink", "params": {}}, "back": {"kind": "sink", "params": {}})",
      edge("in", "0", "cut") + "," + edge("cut", "0", "nat") + "," +
          edge("nat", "\"outside\"", "out") + "," + edge("nat", "\"inside\"", "back"));
  const Value found = find_routes(spec, {});
  const Value& route = found["routes"]["in"].as_list().at(0);
  ASSERT_EQ(route["ways"].as_list().size(), 1U);
  EXPECT_EQ(route["ways"].as_list().at(0)["end"], Value("out"));
  EXPECT_EQ(found["warnings"].as_list().size(), 1U);
}

TEST(Routes, FurtherFramesComeInWhereTheyAreSaidTo) {
  const std::string far =
      "020000000200020000000100080045000014000000004011000000000000630000630000";
  const Value frames = Dict{{"frames", Dict{{"load", List{far}}, {"in", List{far, far}}}}};
  const Value found = find_routes(router(), frames);
  EXPECT_EQ(found["frames"]["load"].as_list().at(0)["ways"].as_list().at(0)["end"],
            Value("out_wan"));
  EXPECT_EQ(found["frames"]["in"].as_list().at(1)["name"], Value("frame 1"));
  const auto with = [](const std::string& name, const std::string& hex) {
    return Value(Dict{{"frames", Dict{{name, List{hex}}}}});
  };
  EXPECT_EQ(error_of(router(), with("laod", far)),
            "frames.laod: nothing called 'laod' brings packets in (did you mean 'load'?)");
  EXPECT_EQ(error_of(router(), with("load", "0x12")),
            "frames.load[0]: 'x' is no hexadecimal digit (use 0-9, a-f)");
  EXPECT_NE(
      error_of(router(), with("load", std::string(6000, '0'))).find("3000 bytes does not fit"),
      std::string::npos);
  EXPECT_NE(error_of(router(), Value(Dict{})).find("no frames are given"), std::string::npos);
}

}  // namespace
}  // namespace batchplane::app
