// SPDX-License-Identifier: BSD-3-Clause
#include "modules/cases.h"

#include <cstring>

#include "base/net.h"
#include "modules/case_tools.h"
#include "modules/frames.h"

namespace bench {

namespace {

// Filled before main() by the files of other families.
std::vector<void (*)(std::vector<ModuleCase>&)>& added() {
  static std::vector<void (*)(std::vector<ModuleCase>&)> list;
  return list;
}

constexpr uint32_t kRoutes = 500;
constexpr uint32_t kRules = 1000;

void add_in_place(std::vector<ModuleCase>& all) {
  all.push_back(plain("null", "null"));
  all.back().note = "the control itself: what is left is noise";
  all.push_back(plain("merge", "merge"));
  all.push_back(plain("counter", "counter"));
  all.push_back(plain("counter by size", "counter", {{"by_size", true}}));
  all.push_back(plain("meter", "meter"));
  const auto lowers_ttl = [](Packet& pkt, uint32_t, uint32_t) {
    return expect_byte(pkt, net::kEthBytes + net::kIpTtl, kFrameTtl - 1);
  };
  all.push_back(with_target(plain("ttl", "ttl"), 4, 1));
  all.back().check = [lowers_ttl](Packet& pkt, uint32_t gate, uint32_t i) {
    const std::string wrong = lowers_ttl(pkt, gate, i);
    return wrong.empty() ? expect_good_sum(pkt) : wrong;
  };
  all.push_back(with_target(plain("ttl, checksum left", "ttl", {{"mend_checksum", false}}), 4, 1));
  all.back().check = lowers_ttl;
  all.push_back(with_target(plain("checksum full", "checksum"), 5, 1.5));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) { return expect_good_sum(pkt); };
  all.push_back(
      with_target(plain("checksum incremental", "checksum", {{"mode", "incremental"}}), 5, 1.5));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) {
    // The frame's sum was right for the TTL that it still has: one step further it is right again
    // when the TTL follows.
    uint8_t* ttl = pkt.data() + net::kEthBytes + net::kIpTtl;
    *ttl = static_cast<uint8_t>(*ttl - 1);
    const std::string wrong = expect_good_sum(pkt);
    *ttl = static_cast<uint8_t>(*ttl + 1);
    return wrong.empty() ? wrong : "the mended checksum is wrong";
  };
  all.push_back(plain("checksum check", "checksum", {{"mode", "check"}}));
  all.push_back(plain("ipv4_check", "ipv4_check"));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    return pkt.meta().l3_offset_bytes == net::kEthBytes ? "" : "the header was not noted";
  };
  all.push_back(plain("mac_rewrite", "mac_rewrite",
                      {{"src", "aa:bb:bb:aa:ff:dc"}, {"dst", "ee:dd:dd:aa:01:ff"}}));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) { return expect_byte(pkt, 0, 0xee); };
  all.push_back(plain("cost 100 ns + 10 ns", "cost",
                      {{"cost_per_batch_ns", 100.0}, {"cost_per_pkt_ns", 10.0}}));
  all.push_back(plain("pcap_tap off", "pcap_tap", {{"path", "/dev/null"}, {"is_on", false}}));
  all.push_back(
      plain("pcap_tap 1 in 1000", "pcap_tap", {{"path", "/dev/null"}, {"sample_one_in", 1000}}));
}

List routes(uint32_t n) {
  List list;
  for (uint32_t i = 0; i < n; ++i) {
    list.push_back(Dict{{"prefix", net::format_prefix4({flow_address(i) & net::mask4(24), 24})},
                        {"gate", static_cast<int64_t>(i % kGates)}});
  }
  return list;
}

void add_lookup(std::vector<ModuleCase>& all) {
  ModuleCase few = plain("ipv4_lookup, 500 routes", "ipv4_lookup", {{"routes", routes(kRoutes)}});
  few.gates = kGates;
  few.frame = [](uint32_t i) { return udp_frame(kRouterMac, flow_address(i % kRoutes)); };
  few.check = [](Packet&, uint32_t gate, uint32_t i) {
    return expect_gate(gate, i % kRoutes % kGates);
  };
  all.push_back(with_target(std::move(few), 10, 2.5));
  ModuleCase many = plain("ipv4_lookup, 1 M routes, random", "ipv4_lookup",
                          {{"routes", List{Dict{{"prefix", "0.0.0.0/0"}, {"gate", 0}}}},
                           {"synthetic", Dict{{"count", 1'000'000}, {"gates", 16}}}});
  many.gates = kGates;
  many.feed = Feed::kRandom;
  many.note = "each packet gets a random destination before each call";
  all.push_back(std::move(many));
}

void add_matches(std::vector<ModuleCase>& all) {
  List rules;
  for (uint32_t i = 0; i < kRules; ++i) {
    rules.push_back(Dict{
        {"values", List{17, net::format_ipv4(kSourceAddress), net::format_ipv4(flow_address(i))}},
        {"gate", static_cast<int64_t>(i % kGates)}});
  }
  const List fields{Dict{{"offset", 23}, {"size_bytes", 1}},
                    Dict{{"offset", 26}, {"size_bytes", 4}},
                    Dict{{"offset", 30}, {"size_bytes", 4}}};
  ModuleCase exact = plain("exact_match, 3 fields, 1000 rules", "exact_match",
                           {{"fields", fields}, {"rules", rules}});
  exact.gates = kGates;
  exact.frame = [](uint32_t i) { return udp_frame(kRouterMac, flow_address(i * 15 % kRules)); };
  exact.check = [](Packet&, uint32_t gate, uint32_t i) {
    return expect_gate(gate, i * 15 % kRules % kGates);
  };
  all.push_back(with_target(std::move(exact), 20, 5));

  List entries;
  for (uint32_t i = 0; i < kRules; ++i) {
    entries.push_back(
        Dict{{"mac", net::format_mac(host_mac(i))}, {"gate", static_cast<int64_t>(i % kGates)}});
  }
  ModuleCase one =
      plain("l2_table, 1 entry", "l2_table",
            {{"entries", List{Dict{{"mac", net::format_mac(kRouterMac)}, {"gate", 0}}}}});
  one.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 0); };
  all.push_back(with_target(std::move(one), 15, 4));
  ModuleCase macs = plain("l2_table, 1000 entries", "l2_table", {{"entries", entries}});
  macs.gates = kGates;
  macs.frame = [](uint32_t i) { return udp_frame(host_mac(i * 15 % kRules), flow_address(i)); };
  macs.check = [](Packet&, uint32_t gate, uint32_t i) {
    return expect_gate(gate, i * 15 % kRules % kGates);
  };
  all.push_back(with_target(std::move(macs), 15, 4));
  ModuleCase type = plain("ether_type, 1 rule", "ether_type",
                          {{"rules", List{Dict{{"ether_type", "ipv4"}, {"gate", 0}}}}});
  type.check = one.check;
  all.push_back(std::move(type));
  ModuleCase types = plain("ether_type, 4 rules", "ether_type",
                           {{"rules", List{Dict{{"ether_type", "arp"}, {"gate", 0}},
                                           Dict{{"ether_type", "ipv6"}, {"gate", 1}},
                                           Dict{{"ether_type", "vlan"}, {"gate", 2}},
                                           Dict{{"ether_type", "ipv4"}, {"gate", 3}}}}});
  types.gates = 4;
  types.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 3); };
  all.push_back(std::move(types));
}

void add_splits(std::vector<ModuleCase>& all) {
  const auto below = [](Packet&, uint32_t gate, uint32_t) {
    return gate < kGates ? std::string() : "gate " + text_of(gate) + " of 16";
  };
  for (const std::string mode : {"round_robin", "random", "hash", "weighted"}) {
    Dict params{{"mode", mode}, {"gates", static_cast<int64_t>(kGates)}};
    if (mode == "weighted") params["weights"] = List(kGates, 1.0);
    ModuleCase c = plain("split 16 " + mode, "split", std::move(params));
    c.gates = kGates;
    c.check = below;
    all.push_back(std::move(c));
  }
}

void add_hosts(std::vector<ModuleCase>& all) {
  const Dict table{{"table", "main"},
                   {"routes", List{Dict{{"prefix", "20.0.0.0/8"}, {"via", "10.0.2.9"}}}}};
  const List neighbours{
      Dict{{"interface", "if2"}, {"address", "10.0.2.9"}, {"mac", "02:00:00:00:02:09"}}};
  ModuleCase resolved =
      plain("neighbour, resolved", "neighbour", {{"table", "main"}, {"neighbours", neighbours}});
  resolved.gates = 4;
  resolved.before_kind = "ipv4_lookup";
  resolved.before_params = table;
  resolved.check = [](Packet& pkt, uint32_t gate, uint32_t) {
    const std::string wrong = expect_gate(gate, 2);
    return wrong.empty() ? expect_byte(pkt, 5, 0x09) : wrong;
  };
  all.push_back(std::move(resolved));

  ModuleCase error = plain("icmp_error, time exceeded", "icmp_error",
                           {{"errors_per_s", 10'000'000}, {"burst", 1'000'000}});
  error.feed = Feed::kFrames;
  error.drop_reason = "ttl_expired";
  // No error is sent about a frame to a group address, which kRouterMac is.
  error.frame = [](uint32_t i) { return udp_frame(host_mac(0), flow_address(i % kGates)); };
  error.check = [](Packet& pkt, uint32_t, uint32_t) {
    return expect_byte(pkt, net::kEthBytes + net::kIpv4Bytes, 11);
  };
  all.push_back(std::move(error));
  ModuleCase echo = plain("icmp_echo, reply", "icmp_echo");
  echo.feed = Feed::kFrames;
  echo.gates = 2;
  echo.frame = [](uint32_t i) { return ping_frame(i); };
  echo.check = [](Packet& pkt, uint32_t gate, uint32_t) {
    const std::string wrong = expect_gate(gate, 0);
    return wrong.empty() ? expect_byte(pkt, net::kEthBytes + net::kIpv4Bytes, 0) : wrong;
  };
  all.push_back(std::move(echo));
}

void add_ends(std::vector<ModuleCase>& all) {
  ModuleCase source = plain("source, 16 flows", "source",
                            {{"flows", List{Dict{{"count", static_cast<int64_t>(kGates)}}}}});
  source.feed = Feed::kSource;
  source.note = "pool included: packets come from it and go back";
  source.check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    return pkt.len_bytes() == 60 ? "" : "a packet of " + text_of(pkt.len_bytes()) + " bytes";
  };
  all.push_back(std::move(source));
  ModuleCase sink = plain("sink", "sink");
  sink.feed = Feed::kTaken;
  sink.note = "with delays of flows; the pool is counted at the source";
  all.push_back(std::move(sink));
  ModuleCase drop = plain("drop", "drop");
  drop.feed = Feed::kTaken;
  drop.takes_all = true;
  drop.note = "what the engine does with dropped packets is not included";
  all.push_back(std::move(drop));
  ModuleCase out = plain("port_out, null port", "port_out", {{"port", "p0"}});
  out.feed = Feed::kPool;
  all.push_back(std::move(out));
  ModuleCase queue = plain("queue, both ends on one core", "queue");
  queue.feed = Feed::kThrough;
  queue.check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    return pkt.len_bytes() == 60 ? "" : "not the packet that went in";
  };
  all.push_back(std::move(queue));
}

}  // namespace

AddCases::AddCases(void (*add)(std::vector<ModuleCase>&)) { added().push_back(add); }

std::vector<ModuleCase> module_cases() {
  std::vector<ModuleCase> all;
  add_in_place(all);
  add_lookup(all);
  add_matches(all);
  add_splits(all);
  add_hosts(all);
  add_ends(all);
  for (const auto add : added()) add(all);
  return all;
}

const std::map<std::string, std::string>& kinds_left_out() {
  static const std::map<std::string, std::string> kLeftOut = {
      {"port_in", "its cost is that of its port"},
      {"local_tap", "its cost is that of the kernel's side"},
  };
  return kLeftOut;
}

}  // namespace bench
