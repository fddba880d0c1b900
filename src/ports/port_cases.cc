// SPDX-License-Identifier: BSD-3-Clause
// port_cases.cc - fuzzing and measuring cases for a pipeline's ends and the queue between tasks.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_costs(std::vector<CostCase>& all) {
  CostCase out = plain("port_out, null port", "port_out", {{"port", "p0"}});
  all.push_back(std::move(out));
  CostCase queue = plain("queue, filling it", "queue");
  queue.check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    return pkt.len_bytes() == 60 ? "" : "not the packet that went in";
  };
  all.push_back(std::move(queue));
}

constexpr const char* kNoModel = "it moves packets as they are between a task and a ring or port";

const AddCases kCases{{.fuzz = {{"port_in", R"({"port": "loop"})"},
                                {"port_out", R"({"port": "null", "interface": "lan"})"},
                                {"queue", R"({"size_pkts": 16})"}},
                       .cost = add_costs,
                       .without = {{"port_in", Need::kCost, "its cost is that of its port"},
                                   {"port_in", Need::kGolden, kNoModel},
                                   {"port_out", Need::kGolden, kNoModel},
                                   {"queue", Need::kGolden, kNoModel}}}};

}  // namespace
}  // namespace batchplane::cases
