// SPDX-License-Identifier: BSD-3-Clause
// cases_mobile.cc - tunnels and sessions of mobile users: 8 of them, and 100,000, each packet that
// of a random one.
#include "modules/case_tools.h"
#include "modules/cases.h"
#include "modules/session_rules.h"

namespace bench {
namespace {

constexpr uint32_t kFirstUser = (10U << 24) + (45U << 16) + 1;
constexpr uint32_t kInnerSource = 50 + net::kIpSrc;

std::vector<uint8_t> user_frame(bool is_uplink) {
  batchplane::traffic::FlowSpec flow;
  flow.dst_mac = kRouterMac;
  flow.src_mac = {0x02, 0, 0, 0, 0xff, 0x01};
  flow.src_ip = is_uplink ? kFirstUser : kSourceAddress;
  flow.dst_ip = is_uplink ? kSourceAddress : kFirstUser;
  flow.src_port = 1000;
  flow.dst_port = 2000;
  if (is_uplink) {
    flow.tunnel = {.kind = batchplane::traffic::TunnelSpec::Kind::kGtpu,
                   .id = 1,
                   .src_ip = (192U << 24) + 1,
                   .dst_ip = (10U << 24) + 1};
  }
  return batchplane::traffic::build_frame(flow, batchplane::traffic::kMinFrameBytes);
}

// Sums are not mended: nothing here reads them.
void deal_uplink(Packet& pkt, uint32_t user) {
  net::store32(pkt.data() + 46, 1 + user);
  net::store32(pkt.data() + kInnerSource, kFirstUser + user);
}
void deal_downlink(Packet& pkt, uint32_t user) {
  net::store32(pkt.data() + net::kEthBytes + net::kIpDst, kFirstUser + user);
}
// A user has one rule each way: this is the downlink one.
void deal_marked(Packet& pkt, uint32_t user) {
  pkt.set_mark(1U << 24 | batchplane::session::slot_at(user, false));
}

ModuleCase mobile(const std::string& kind, uint32_t users, void (*deal)(Packet&, uint32_t),
                  bool is_uplink = false) {
  const std::string who = users < 1000 ? text_of(users) : text_of(users / 1000) + " k";
  ModuleCase one =
      plain(kind + ", " + who + " users", kind,
            {{"synthetic", Dict{{"count", users}, {"groups", 8}, {"mbr_bps", 1'000'000'000'000}}}});
  one.feed = Feed::kDealt;
  one.flows = users;
  one.deal = deal;
  one.frame = [is_uplink](uint32_t) { return user_frame(is_uplink); };
  return one;
}

const AddCases kAdded{[](std::vector<ModuleCase>& all) {
  for (const uint32_t users : {8U, 100'000U}) {
    ModuleCase decap = mobile("gtpu_decap", users, deal_uplink, true);
    decap.gates = 4;
    decap.check = [](Packet& pkt, uint32_t gate, uint32_t) -> std::string {
      return pkt.len_bytes() == 60 ? expect_gate(gate, 0) : "not taken out";
    };
    all.push_back(std::move(decap));
    all.push_back(mobile("session_downlink", users, deal_downlink));
    ModuleCase split = mobile("session_split", users, deal_marked);
    split.params["by"] = "group";
    split.gates = 8;
    all.push_back(std::move(split));
    all.push_back(mobile("session_hold", users, deal_marked));
    all.push_back(mobile("session_enforce", users, deal_marked));
    ModuleCase quotas = mobile("session_enforce", users, deal_marked);
    quotas.label += ", quotas";
    Dict given = quotas.params["synthetic"].as_dict();
    given["quota_bytes"] = int64_t{1'000'000'000'000'000'000};
    quotas.params["synthetic"] = given;
    all.push_back(std::move(quotas));
    ModuleCase encap = mobile("gtpu_encap", users, deal_marked);
    encap.params["local"] = "10.0.0.1";
    encap.check = [](Packet& pkt, uint32_t, uint32_t) {
      const std::string wrong = expect_good_sum(pkt);
      return wrong.empty() ? expect_byte(pkt, 42, 0x30) : wrong;
    };
    all.push_back(std::move(encap));
  }
  ModuleCase marks = plain("mark_split", "mark_split");
  marks.gates = 8;
  marks.feed = Feed::kDealt;
  marks.flows = 8;
  marks.deal = [](Packet& pkt, uint32_t user) { pkt.set_mark(user); };
  all.push_back(std::move(marks));
}};

}  // namespace
}  // namespace bench
