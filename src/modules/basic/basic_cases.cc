// SPDX-License-Identifier: BSD-3-Clause
// basic_cases.cc - inputs for fuzzing and measuring the small modules that read no header.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_basic_costs(std::vector<CostCase>& all) {
  all.push_back(plain("null", "null"));
  all.back().note = "what calling a module takes";
  all.push_back(plain("merge", "merge"));
  all.push_back(plain("counter", "counter"));
  all.push_back(plain("counter by size", "counter", {{"by_size", true}}));
  all.push_back(plain("meter", "meter"));
  all.push_back(plain("cost 100 ns + 10 ns", "cost",
                      {{"cost_per_batch_ns", 100.0}, {"cost_per_pkt_ns", 10.0}}));
  CostCase set = plain("set_meta", "set_meta", {{"vrf", 3}, {"mark", 7}});
  set.check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    return pkt.meta().vrf == 3 && pkt.mark() == 7 ? "" : "not set";
  };
  all.push_back(std::move(set));
  CostCase marks = plain("mark_split", "mark_split");
  marks.gates = 8;
  marks.feed = Feed::kDealt;
  marks.flows = 8;
  marks.deal = [](Packet& pkt, uint32_t user) { pkt.set_mark(user); };
  all.push_back(std::move(marks));
  CostCase sink = plain("sink", "sink");
  sink.note = "delays of flows included, and giving packets back to the pool";
  all.push_back(std::move(sink));
  CostCase drop = plain("drop", "drop");
  drop.takes_all = true;
  drop.note = "what the engine does with dropped packets is not included";
  all.push_back(std::move(drop));
}

const AddCases kBasicCases{{.fuzz = {{"null", "{}"},
                                     {"merge", "{}"},
                                     {"counter", R"({"by_size": true})"},
                                     {"meter", R"({"window_ns": 1000000})"},
                                     {"cost", R"({"cost_per_pkt_ns": 0})"},
                                     {"set_meta", R"({"vrf": 1, "mark": 7, "tunnel_id": 9})"},
                                     {"mark_split", R"({"first": 16777216})", 4},
                                     {"mark_split", R"({"default_gate": 1})", 2},
                                     {"sink", "{}"},
                                     {"drop", "{}"}},
                            .cost = add_basic_costs}};

}  // namespace
}  // namespace batchplane::cases
