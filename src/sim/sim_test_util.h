// SPDX-License-Identifier: BSD-3-Clause
// sim_test_util.h - small pipelines for tests: a chain of modules, a tree, a gateway.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/spec.h"

namespace batchplane::sim {

// Builds a specification edge by edge; each module has the cost given with it.
class SpecMaker {
 public:
  explicit SpecMaker(uint32_t batch_pkts = 32) {
    spec_.pipeline.name = "test";
    spec_.pipeline.engine.batch_pkts = batch_pkts;
    spec_.pipeline.ports = {{"p", "ring", {{"size_pkts", Value(64)}}}};
    module("in", "port_in", 0, 0);
    spec_.pipeline.modules.back().params = {{"port", Value("p")}};
    spec_.pipeline.generators = {{"load", "p", -1, {}}};
    SourceSpec source;
    source.name = "load";
    source.port = "p";
    spec_.sources.push_back(source);
    spec_.routes.emplace_back();
  }

  SpecMaker& module(const std::string& name, const std::string& kind, double per_batch_ns,
                    double per_pkt_ns, uint32_t trigger_pkts = 0, uint64_t age_limit_ns = 0) {
    ModuleSpec made;
    made.name = name;
    made.kind = kind;
    made.trigger_pkts = trigger_pkts;
    made.age_limit_ns = age_limit_ns;
    spec_.pipeline.modules.push_back(made);
    spec_.costs[name] = {per_batch_ns, per_pkt_ns};
    return *this;
  }
  SpecMaker& edge(const std::string& from, const std::string& to, const std::string& gate = "0") {
    spec_.pipeline.edges.push_back({from, gate, to});
    return *this;
  }
  SpecMaker& chain(const std::vector<std::string>& names) {
    for (size_t i = 0; i + 1 < names.size(); ++i) edge(names[i], names[i + 1]);
    return *this;
  }
  // A declared flow, and traffic of the same name that takes the gates of `route`.
  SpecMaker& flow(const std::string& name, std::vector<std::string> path, FlowRoute route,
                  uint64_t slo_ns = 0, double weight = 1) {
    spec_.pipeline.flows.push_back({name, std::move(path), slo_ns});
    spec_.sources.front().flows.push_back({name, weight, 0, 64});
    spec_.routes.front().push_back(std::move(route));
    return *this;
  }
  [[nodiscard]] Spec& spec() { return spec_; }
  [[nodiscard]] SourceSpec& source() { return spec_.sources.front(); }

 private:
  Spec spec_;
};

// in -> split -> n leaves, each followed by an end; flows arrive in turn.
inline SpecMaker make_tree(uint32_t n_leaves, double per_batch_ns, double per_pkt_ns,
                           uint32_t trigger_pkts = 0, double split_ns = 0) {
  SpecMaker maker;
  maker.module("split", "l2_table", split_ns, 0).edge("in", "split");
  for (uint32_t i = 0; i < n_leaves; ++i) {
    const std::string n = std::to_string(i);
    maker.module("leaf_" + n, "cost", per_batch_ns, per_pkt_ns, trigger_pkts);
    maker.module("out_" + n, "sink", 0, 0);
    maker.edge("split", "leaf_" + n, n).edge("leaf_" + n, "out_" + n);
    maker.flow("flow_" + n, {"in", "split", "leaf_" + n, "out_" + n}, {{"split", n}});
  }
  return maker;
}

// A gateway laid out as in pipelines/gateway.yaml, with costs close to measured ones.
inline SpecMaker make_gateway(uint32_t n_hops, uint32_t trigger_pkts) {
  SpecMaker maker;
  maker.module("type_check", "ether_type", 2, 0.5).module("l2", "l2_table", 4, 1.5);
  maker.module("lookup", "ipv4_lookup", 10, 3).chain({"in", "type_check", "l2", "lookup"});
  for (uint32_t i = 0; i < n_hops; ++i) {
    const std::string n = "_" + std::to_string(i);
    maker.module("acl" + n, "acl", 12, 5, trigger_pkts).module("nat" + n, "static_nat", 5, 2.7);
    maker.module("ttl" + n, "ttl", 1, 0.9).module("mac" + n, "mac_rewrite", 1, 0.8);
    maker.module("sum" + n, "checksum", 1, 1.4).module("out" + n, "sink", 5, 2);
    maker.edge("lookup", "acl" + n, std::to_string(i));
    maker.chain({"acl" + n, "nat" + n, "ttl" + n, "mac" + n, "sum" + n, "out" + n});
    maker.flow("flow" + n,
               {"in", "type_check", "l2", "lookup", "acl" + n, "nat" + n, "ttl" + n, "mac" + n,
                "sum" + n, "out" + n},
               {{"lookup", std::to_string(i)}});
  }
  return maker;
}

}  // namespace batchplane::sim
