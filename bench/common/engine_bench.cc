// SPDX-License-Identifier: BSD-3-Clause
#include "common/engine_bench.h"

#include <cstdio>

#include "base/net.h"

namespace bench {

using batchplane::Dict;
using batchplane::List;

SpecBuilder& SpecBuilder::module(const std::string& name, const std::string& kind, Dict params,
                                 uint32_t trigger_pkts) {
  batchplane::ModuleSpec module;
  module.name = name;
  module.kind = kind;
  module.params = std::move(params);
  module.trigger_pkts = trigger_pkts;
  spec.modules.push_back(std::move(module));
  return *this;
}

SpecBuilder& SpecBuilder::edge(const std::string& from, const std::string& to, uint32_t gate) {
  spec.edges.push_back({from, std::to_string(gate), to});
  return *this;
}

SpecBuilder& SpecBuilder::flow(const std::string& name, std::vector<std::string> path) {
  spec.flows.push_back({name, std::move(path), 0});
  return *this;
}

EngineBench::EngineBench(const batchplane::PipelineSpec& spec, const std::string& pool_name) {
  auto quiescence = std::make_shared<batchplane::Quiescence>();
  auto env = std::make_unique<batchplane::Environment>();
  env->quiescence = quiescence.get();
  auto graph = batchplane::build_graph(spec, std::move(env));
  const uint64_t pkts = std::max<uint64_t>(batchplane::Engine::min_pool_pkts(*graph), 4096);
  auto pool = std::make_unique<batchplane::PacketPool>(pool_name, static_cast<uint32_t>(pkts));
  engine_ = std::make_unique<batchplane::Engine>(std::move(graph), std::move(pool), quiescence);
}

uint64_t EngineBench::run(uint32_t n_loops) {
  batchplane::Worker& worker = *engine_->workers().front();
  uint64_t pkts = 0;
  for (uint32_t i = 0; i < n_loops; ++i) pkts += worker.loop_once();
  return pkts;
}

std::string EngineBench::verify() {
  run(1000);
  const batchplane::Balance balance = engine_->snapshot(false).balance;
  if (!balance.is_exact()) return "packets do not add up";
  if (balance.dropped_pkts != 0)
    return std::to_string(balance.dropped_pkts) + " packets were dropped";
  return "";
}

batchplane::PipelineSpec l2l3_spec(uint32_t n_next_hops, uint32_t fib_size, bool is_random,
                                   uint32_t batch_pkts) {
  SpecBuilder b;
  b.spec.name = "l2l3";
  b.spec.engine.batch_pkts = batch_pkts;
  b.module("in", "source",
           {{"flows", List{Dict{{"count", static_cast<int64_t>(n_next_hops)},
                                {"dst_mac", "11:77:0b:00:01:01"},
                                {"src_ip", "10.0.0.1"},
                                {"dst_ip", "20.0.0.1"},
                                {"dst_ip_step", 256}}}},
            {"order", is_random ? "random" : "round_robin"}});
  b.module("type_check", "ether_type",
           {{"rules", List{Dict{{"ether_type", "ipv4"}, {"gate", 0}}}}});
  b.module("split", "l2_table",
           {{"entries", List{Dict{{"mac", "11:77:0b:00:01:01"}, {"gate", 0}}}}});
  List routes;
  for (uint32_t i = 0; i < fib_size; ++i) {
    const uint32_t base = i < n_next_hops ? (20U << 24) + (i << 8) : (100U << 24) + (i << 8);
    routes.push_back(Dict{{"prefix", batchplane::net::format_prefix4({base, 24})},
                          {"gate", static_cast<int64_t>(i % n_next_hops)}});
  }
  b.module("lookup", "ipv4_lookup", {{"routes", routes}});
  b.edge("in", "type_check").edge("type_check", "split").edge("split", "lookup");
  for (uint32_t i = 0; i < n_next_hops; ++i) {
    const std::string n = std::to_string(i);
    char src[18];
    char dst[18];
    std::snprintf(src, sizeof src, "aa:bb:bb:aa:%02x:dc", i & 255);
    std::snprintf(dst, sizeof dst, "ee:dd:dd:aa:01:%02x", i & 255);
    b.module("ttl_" + n, "ttl", {{"mend_checksum", false}});
    b.module("mac_" + n, "mac_rewrite", {{"src", src}, {"dst", dst}});
    b.module("sum_" + n, "checksum");
    b.module("out_" + n, "sink");
    b.edge("lookup", "ttl_" + n, i).edge("ttl_" + n, "mac_" + n).edge("mac_" + n, "sum_" + n);
    b.edge("sum_" + n, "out_" + n);
    b.flow("flow_" + n, {"in", "lookup:" + n, "out_" + n});
  }
  return b.spec;
}

}  // namespace bench
