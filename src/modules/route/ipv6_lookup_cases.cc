// SPDX-License-Identifier: BSD-3-Clause
// ipv6_lookup_cases.cc - inputs for fuzzing and measuring ipv6_lookup, among them 100 000 prefixes
// distributed as in the public table.
#include <set>

#include "base/rng.h"
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

constexpr uint32_t kPrefixes = 100'000;

// An address within each of the routes that a lookup generates for `count`.
void add_many(std::vector<CostCase>& all) {
  CostCase many = plain6("ipv6_lookup, 100 k routes, random", "ipv6_lookup");
  many.gates = kGates;
  many.feed = Feed::kRandom6;
  many.note =
      "each packet gets the address of a random route before each call; 25 ns at batches of 32 is "
      "the aim";
  List routes{Dict{{"prefix", "::/0"}, {"gate", 0}}};
  Rng rng(1);
  std::set<net::Prefix6> taken;
  while (taken.size() < kPrefixes) {
    // A quarter as many /32 networks as prefixes; half of the prefixes are /48.
    Rng of_network(rng.below(kPrefixes / 4) + 1);
    const uint64_t first = 0x2400'0000ULL + (of_network.next() >> 36);
    constexpr uint8_t kLengths[] = {48, 48, 48, 48, 48, 44, 40, 36, 46, 32};
    const uint8_t length = kLengths[rng.below(10)];
    const net::Prefix6 prefix{
        net::Address6{first << 32 | (rng.next() >> 32), 0} & net::mask6(length), length};
    if (!taken.insert(prefix).second) continue;
    const net::Address6 address = prefix.address | net::Address6{0, rng.next()};
    auto& bytes = many.destinations6.emplace_back();
    net::store_address6(bytes.data(), address);
    routes.push_back(Dict{{"prefix", net::format_prefix6(prefix)},
                          {"gate", static_cast<int64_t>(taken.size() % kGates)}});
  }
  many.params = {{"routes", std::move(routes)}};
  all.push_back(std::move(many));
}

void add_ipv6_lookup_costs(std::vector<CostCase>& all) {
  add_many(all);
  List few;
  for (uint32_t i = 0; i < 500; ++i) {
    few.push_back(Dict{{"prefix", net::format_prefix6({flow_address6(i) & net::mask6(40), 40})},
                       {"gate", i % kGates}});
  }
  CostCase small = plain6("ipv6_lookup, 500 routes", "ipv6_lookup", {{"routes", std::move(few)}});
  small.gates = kGates;
  small.check = [](Packet&, uint32_t gate, uint32_t i) { return expect_gate(gate, i % kGates); };
  all.push_back(std::move(small));
}

const AddCases kIpv6LookupCases{
    {.fuzz = {{"ipv6_lookup",
               R"({"table": "main", "interfaces": true, "max_next_hops": 64, "max_prefixes": 256,
                   "next_hops": [{"id": 1, "via": "2001:db8:2::2"}, {"id": 2, "via": "fe80::2%wan"},
                                 {"id": 3, "group": [{"next_hop": 1, "weight": 1},
                                                     {"next_hop": 2, "weight": 2}]},
                                 {"id": 4, "interface": "lan"}],
                   "routes": [{"prefix": "::/0", "via": "2001:db8:2::2"},
                              {"prefix": "2a00::/16", "next_hop": 3},
                              {"prefix": "2b00::/16", "drop": true},
                              {"prefix": "2c00::/33", "gate": 2}]})",
               3},
              {"ipv6_lookup",
               R"({"interfaces": true, "reverse_path": "strict", "closed_interfaces": ["wan"],
                   "routes": [{"prefix": "2a00::/16", "via": "2001:db8:2::2"}], "max_prefixes": 256})",
               2}},
     .cost = add_ipv6_lookup_costs}};

}  // namespace
}  // namespace batchplane::cases
