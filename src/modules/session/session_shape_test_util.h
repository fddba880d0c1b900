// SPDX-License-Identifier: BSD-3-Clause
// session_shape_test_util.h - users whose packets share a scheduler with a tree, in virtual time.
#pragma once

#include <map>

#include "engine_rig.h"
#include "modules/session/session_shape.h"
#include "modules/session/session_test_util.h"

namespace batchplane {

inline constexpr int64_t kMbps = 1'000'000;

// QERs of the session's downlink rules: PDR 2 takes packets from anywhere, PDR 3 those from port
// 5000.
inline Dict shaped_session(const List& qers, const List& on_default, const List& on_special,
                           int64_t seid = 1, const char* ue = "10.45.0.2") {
  return with_qers(test_session(seid, 99 + seid, ue), qers, on_default, on_special);
}
inline Dict shaped_qer(int id, int64_t mbr_bps, const Dict& more = {}) {
  Dict qer{{"id", id}, {"shape", "down"}};
  if (mbr_bps != 0) qer["mbr_down_bps"] = mbr_bps;
  for (const auto& [key, value] : more) qer[key] = value;
  return qer;
}

// Downlink traffic to users from 10.45.0.2 on, cycling through `flows`: {dst_ip, src_port}. Frames
// of 1000 bytes.
struct ShapeWorld {
  Dict source = {};
  Dict link = {};
  Dict users = {};
  Dict shape = {{"down", "link"}};

  [[nodiscard]] PipelineSpec spec() const {
    PipelineSpec spec;
    spec.workers = {{"w0", -1}};
    const auto add = [&](const char* name, const char* kind, Dict params, const Dict& more) {
      for (const auto& [key, value] : more) params[key] = value;
      spec.modules.push_back({name, kind, std::move(params)});
    };
    Dict sessions = users;
    if (!shape.empty()) sessions["shape"] = shape;
    add("in", "source", {{"size_bytes", 1004}}, source);
    add("users", "session_downlink", {}, sessions);
    add("down", "session_enforce", {}, {});
    add("link", "egress",
        {{"discipline", "tree"}, {"rate_bps", 8'000 * kMbps}, {"max_flows", 1024}}, link);
    add("out", "sink", {}, {});
    const char* const chain[] = {"in", "users", "down", "link", "out"};
    for (size_t i = 1; i < std::size(chain); ++i) {
      spec.edges.push_back({chain[i - 1], "0", chain[i]});
    }
    spec.flows.push_back({"down", {chain, chain + std::size(chain)}, 0});
    return spec;
  }
};

inline Dict to_user(const char* dst_ip, int64_t src_port) {
  return {{"dst_ip", dst_ip}, {"src_port", src_port}};
}

class ShapeRig {
 public:
  explicit ShapeRig(const ShapeWorld& world) : rig(world.spec(), 65'536) {}

  Module& module(const char* name) { return *rig.engine().graph().at(name).module; }
  void apply(const ShapeWorld& world) {
    const Environment& old = *rig.engine().graph().env;
    auto env = std::make_unique<Environment>();
    env->quiescence = old.quiescence;
    env->carry_over(old);
    rig.engine().apply(build_graph(world.spec(), std::move(env)));
  }
  // The scheduler's flows as `show` lists them, by number.
  std::map<int64_t, Value> flows() {
    std::map<int64_t, Value> all;
    const Value shown = module("link").show();
    for (const Value& flow : shown["flows"].as_list()) all[flow["flow"].as_int()] = flow;
    return all;
  }
  // Rates by flow over the next `us`.
  std::map<int64_t, double> rates_mbps(uint32_t us = 50'000) {
    std::map<int64_t, double> rates;
    for (const auto& [flow, shown] : flows()) {
      rates[flow] = -static_cast<double>(shown["released_bytes"].as_int());
    }
    rig.loop(us, 1000);
    for (const auto& [flow, shown] : flows()) {
      rates[flow] += static_cast<double>(shown["released_bytes"].as_int());
      rates[flow] *= 8.0 / us;
    }
    return rates;
  }

  EngineRig rig;
};

// The flow of the n-th downlink rule, in the order in which rules were added.
constexpr int64_t nth_flow(uint32_t n) { return session::flow_of_slot(session::slot_at(n, false)); }

}  // namespace batchplane
