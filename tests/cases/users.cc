// SPDX-License-Identifier: BSD-3-Clause
#include "cases/users.h"

#include "modules/session/session_rules.h"
#include "traffic/template.h"

namespace batchplane::cases {
namespace {

constexpr uint32_t kFirstUser = (10U << 24) + (45U << 16) + 1;
constexpr uint32_t kInnerSource = 50 + net::kIpSrc;

std::vector<uint8_t> user_frame(bool is_uplink) {
  traffic::FlowSpec flow;
  flow.dst_mac = kRouterMac;
  flow.src_mac = {0x02, 0, 0, 0, 0xff, 0x01};
  flow.src_ip = is_uplink ? kFirstUser : kSourceAddress;
  flow.dst_ip = is_uplink ? kSourceAddress : kFirstUser;
  flow.src_port = 1000;
  flow.dst_port = 2000;
  if (is_uplink) {
    flow.tunnel = {.kind = traffic::TunnelSpec::Kind::kGtpu,
                   .id = 1,
                   .src_ip = (192U << 24) + 1,
                   .dst_ip = (10U << 24) + 1};
  }
  return traffic::build_frame(flow, traffic::kMinFrameBytes);
}

}  // namespace

void deal_uplink(Packet& pkt, uint32_t user) {
  net::store32(pkt.data() + 46, 1 + user);
  net::store32(pkt.data() + kInnerSource, kFirstUser + user);
}

void deal_downlink(Packet& pkt, uint32_t user) {
  net::store32(pkt.data() + net::kEthBytes + net::kIpDst, kFirstUser + user);
}

// A user has one rule each way: this is the downlink one.
void deal_marked(Packet& pkt, uint32_t user) {
  pkt.set_mark(1U << 24 | session::slot_at(user, false));
}

CostCase of_users(const std::string& kind, uint32_t users, void (*deal)(Packet&, uint32_t),
                  bool is_uplink) {
  const std::string who = users < 1000 ? text_of(users) : text_of(users / 1000) + " k";
  CostCase one =
      plain(kind + ", " + who + " users", kind,
            {{"synthetic", Dict{{"count", users}, {"groups", 8}, {"mbr_bps", 1'000'000'000'000}}}});
  one.feed = Feed::kDealt;
  one.flows = users;
  one.deal = deal;
  one.frame = [is_uplink](uint32_t) { return user_frame(is_uplink); };
  return one;
}

}  // namespace batchplane::cases
