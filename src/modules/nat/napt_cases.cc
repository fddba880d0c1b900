// SPDX-License-Identifier: BSD-3-Clause
// cases_nat.cc - translators of addresses: static pairs, and connections by the few and by the
// million.
#include "modules/case_tools.h"
#include "modules/cases.h"

namespace bench {
namespace {

constexpr uint32_t kFew = 16;
constexpr uint32_t kMillion = 1'000'000;

std::string expect_source(Packet& pkt, uint8_t first_byte) {
  return expect_byte(pkt, net::kEthBytes + net::kIpSrc, first_byte);
}

void add_static(std::vector<ModuleCase>& all) {
  const Dict pair{{"inside", "10.64.0.0/24"}, {"outside", "20.0.0.0/24"}};
  ModuleCase one =
      with_target(plain("static_nat, 1 pair", "static_nat", {{"pairs", List{pair}}}), 8, 4);
  one.feed = Feed::kFlows;
  one.flows = kFew;
  one.check = [](Packet& pkt, uint32_t, uint32_t) { return expect_source(pkt, 20); };
  all.push_back(one);
  List pairs;
  for (uint32_t i = 0; i < 1000; ++i) {
    pairs.push_back(Dict{{"inside", net::format_ipv4((10U << 24) + (64U << 16) + i)},
                         {"outside", net::format_ipv4((20U << 24) + i)}});
  }
  one.label = "static_nat, 1000 pairs";
  one.params = {{"pairs", pairs}};
  one.has_target = false;
  all.push_back(one);
}

ModuleCase napt(const std::string& label, uint32_t flows, const char* externals) {
  ModuleCase one = plain(label, "napt",
                         {{"external", List{externals}},
                          {"max_connections", flows < 32768 ? 65536 : 1'100'000},
                          {"udp_timeout_ns", int64_t{86'400'000'000'000}}});
  one.gates = 3;
  one.flows = flows;
  one.feed = Feed::kFlows;
  return one;
}

void add_stateful(std::vector<ModuleCase>& all) {
  ModuleCase few = with_target(napt("napt, 16 connections", kFew, "30.0.0.1"), 15, 9);
  few.check = [](Packet& pkt, uint32_t gate, uint32_t) {
    const std::string wrong = expect_gate(gate, 0);
    return wrong.empty() ? expect_source(pkt, 30) : wrong;
  };
  all.push_back(few);
  ModuleCase flood = napt("napt, flood of new connections", kMillion, "30.0.0.0/27");
  flood.params["max_connections"] = 16384;
  flood.params["when_full"] = "evict_transitory";
  flood.note = "nearly each packet opens one, and the oldest transitory one ends for it";
  all.push_back(flood);
  for (const bool is_return : {false, true}) {
    const std::string way = is_return ? ", inbound" : "";
    const auto check = [is_return](Packet&, uint32_t gate, uint32_t) {
      return expect_gate(gate, is_return ? 1 : 0);
    };
    ModuleCase some = napt("napt, 4096 connections" + way, 4096, "30.0.0.1");
    ModuleCase many = napt("napt, 1 M connections" + way, kMillion, "30.0.0.0/27");
    for (ModuleCase* one : {&some, &many}) {
      one->is_return = is_return;
      one->check = check;
      one->note = one == &some ? "at batch 32 at most 20 ns per packet are wanted"
                               : "at batch 32 at most 90 ns per packet are wanted";
      all.push_back(*one);
    }
  }
}

const AddCases kAdded{[](std::vector<ModuleCase>& all) {
  add_static(all);
  add_stateful(all);
}};

}  // namespace
}  // namespace bench
