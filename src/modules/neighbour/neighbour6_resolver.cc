// SPDX-License-Identifier: BSD-3-Clause
// neighbour6_resolver.cc - answers discovery messages, learns from them, or drops them.
#include "modules/neighbour/neighbour6_resolver.h"

#include "modules/icmp/icmp6.h"
#include "modules/neighbour/neighbour6_reasons.h"

namespace batchplane {

bool Neighbour6Resolver::is_for_us(Packet& pkt, uint32_t l3) const noexcept {
  const auto& ip = header_in<net::Ipv6>(pkt, l3);
  if (ip.next_header != net::kProtoIcmp6) [[likely]]
    return false;
  if (pkt.len_bytes() <= l3 + net::kIpv6Bytes || !icmp6::is_discovery(behind<net::Icmp>(ip).type)) {
    return false;
  }
  const net::Address6 dst = ip.dst;
  const uint16_t interface = pkt.meta().in_interface;
  return dst.is_multicast() ||
         (interface < interfaces_.size() && own_address(interface, dst) != nullptr);
}

void Neighbour6Resolver::handle(Context& ctx, Batch& batch, uint32_t i, uint32_t l3) noexcept {
  Packet& pkt = *batch[i];
  const auto& ip = header_in<net::Ipv6>(pkt, l3);
  const uint16_t interface = pkt.meta().in_interface;
  if (interface >= interfaces_.size()) {
    ctx.drop(batch, i, neighbour::kNoInterface);
    return;
  }
  const uint32_t payload_bytes = ip.payload_length;
  if (pkt.len_bytes() - l3 - net::kIpv6Bytes < payload_bytes) {
    ctx.drop(batch, i, neighbour::kNdMalformed);
    return;
  }
  const icmp6::Discovery found = icmp6::read_discovery(ip);
  const bool is_mac_bad = found.mac != nullptr && !arp::is_unicast(*found.mac);
  if (!found.is_valid || is_mac_bad) {
    ctx.drop(batch, i, neighbour::kNdMalformed);
    return;
  }
  switch (behind<net::Icmp>(ip).type) {
    case icmp6::kSolicitation:
      return handle_solicitation(ctx, batch, i, l3, found.mac);
    case icmp6::kAdvertisement:
      return handle_advertisement(ctx, batch, i, l3, found.mac);
    case icmp6::kRouterSolicitation:
      handle_router_solicitation(ctx, interface, ip.src, found.mac);
      break;
    default:  // routers ignore advertisements and redirects of others
      break;
  }
  ctx.drop(batch, i, neighbour::kNdDone);
}

void Neighbour6Resolver::handle_solicitation(Context& ctx, Batch& batch, uint32_t i, uint32_t l3,
                                             const net::Mac* option_mac) noexcept {
  Packet& pkt = *batch[i];
  const auto& ip = header_in<net::Ipv6>(pkt, l3);
  const uint16_t interface = pkt.meta().in_interface;
  const net::Address6 sender = ip.src;
  const net::Address6 dst = ip.dst;
  const net::Address6 target = behind<net::NdNeighbour>(ip).target;
  const bool is_probe = sender.is_unspecified();  // duplicate address detection by the sender
  const bool is_to_group = (dst & net::mask6(104)) == net::solicited_node_group({});
  if (target.is_multicast() || (is_probe && (!is_to_group || option_mac != nullptr))) {
    ctx.drop(batch, i, neighbour::kNdMalformed);
    return;
  }
  if (!is_probe && own_address(interface, sender) != nullptr) {
    const bool is_echo = option_mac != nullptr && *option_mac == interfaces_[interface].mac;
    ctx.drop(batch, i, is_echo ? neighbour::kNdDone : neighbour::kNdConflict);
    return;
  }
  if (own_address(interface, target) == nullptr) {
    ctx.drop(batch, i, neighbour::kNdDone);
    return;
  }
  net::Mac receiver = net::group_mac(net::kAllNodes);
  if (option_mac != nullptr) {
    receiver = *option_mac;
    learn(ctx, interface, sender, receiver, true);
  } else if (!is_probe) {
    // The solicitation may lack the option: reply to the frame's source MAC.
    const uint32_t known = table_->find(interface, sender);
    if (l3 >= net::kEthBytes) {
      receiver = header_in<net::Ethernet>(pkt, l3 - net::kEthBytes).src;
    } else if (known != kNoNeighbour && (*table_)[known].has_mac()) {
      receiver = (*table_)[known].mac;
    }
  }
  const uint32_t frame_bytes = icmp6::kNeighbourFrameBytes;
  if (l3 > net::kEthBytes) {
    pkt.pull_front(l3 - net::kEthBytes);
  } else if (l3 < net::kEthBytes) {
    pkt.push_front(net::kEthBytes - l3);
  }
  if (pkt.len_bytes() < frame_bytes && pkt.tailroom_bytes() < frame_bytes - pkt.len_bytes()) {
    ctx.drop(batch, i, reason::kTooShort);
    return;
  }
  pkt.set_len_bytes(frame_bytes);
  icmp6::write_neighbour(pkt.data(),
                         {.type = icmp6::kAdvertisement,
                          .flags = static_cast<uint8_t>(icmp6::kIsRouter | icmp6::kOverrides |
                                                        (is_probe ? 0 : icmp6::kIsSolicited)),
                          .dst_mac = receiver,
                          .own_mac = interfaces_[interface].mac,
                          .src = target,
                          .dst = is_probe ? net::kAllNodes : sender,
                          .target = target});
  pkt.meta().l3_offset_bytes = net::kEthBytes;
  ctx.gates[i] = interface;
}

void Neighbour6Resolver::handle_advertisement(Context& ctx, Batch& batch, uint32_t i, uint32_t l3,
                                              const net::Mac* option_mac) noexcept {
  Packet& pkt = *batch[i];
  const auto& ip = header_in<net::Ipv6>(pkt, l3);
  const auto& message = behind<net::NdNeighbour>(ip);
  const uint16_t interface = pkt.meta().in_interface;
  const uint8_t flags = message.flags;
  const net::Address6 target = message.target;
  const bool is_to_group = net::Address6(ip.dst).is_multicast();
  const DropReason* reason = &neighbour::kNdDone;
  const uint32_t index = table_->find(interface, target);
  if (target.is_multicast() || (is_to_group && (flags & icmp6::kIsSolicited) != 0)) {
    reason = &neighbour::kNdMalformed;
  } else if (own_address(interface, target) != nullptr) {
    const bool is_echo = option_mac != nullptr && *option_mac == interfaces_[interface].mac;
    if (!is_echo) reason = &neighbour::kNdConflict;
  } else if (index != kNoNeighbour && (*table_)[index].state != NeighbourState::kStatic) {
    const Neighbour& entry = (*table_)[index];
    const bool is_new = !entry.has_mac();
    const bool is_same = option_mac == nullptr || *option_mac == entry.mac;
    // RFC 4861, 7.2.5: a different MAC is accepted only with the override flag.
    if (is_new && option_mac != nullptr) {
      resolve(ctx, index, *option_mac, NeighbourState::kReachable);
    } else if (!is_new && !is_same && (flags & icmp6::kOverrides) != 0) {
      resolve(ctx, index, *option_mac, NeighbourState::kReachable);
    } else if (!is_new && is_same && (flags & icmp6::kIsSolicited) != 0) {
      resolve(ctx, index, net::Mac(entry.mac), NeighbourState::kReachable);
    }
  }
  ctx.drop(batch, i, *reason);
}

void Neighbour6Resolver::handle_router_solicitation(Context& ctx, uint16_t interface,
                                                    const net::Address6& sender,
                                                    const net::Mac* option_mac) noexcept {
  if (option_mac != nullptr && own_address(interface, sender) == nullptr) {
    learn(ctx, interface, sender, *option_mac, true);
  }
  advertiser_.solicited(ctx.now_ns, interface);
}

void Neighbour6Resolver::solicit(Context& ctx, uint16_t interface, const net::Mac* known,
                                 const net::Address6& address) noexcept {
  const net::Address6 source = source_for(interface, address);
  if (source.is_unspecified()) return;
  Packet* pkt = ctx.originate(icmp6::kNeighbourFrameBytes);
  if (pkt == nullptr) return;  // counts as a try: the next one follows after retry_ns
  const net::Address6 group = net::solicited_node_group(address);
  icmp6::write_neighbour(pkt->data(), {.type = icmp6::kSolicitation,
                                       .dst_mac = known != nullptr ? *known : net::group_mac(group),
                                       .own_mac = interfaces_[interface].mac,
                                       .src = source,
                                       .dst = known != nullptr ? address : group,
                                       .target = address});
  send(ctx, interface, pkt);
}

void Neighbour6Resolver::announce(Context& ctx) noexcept {
  is_announcing_ = false;
  for (const Interface& interface : interfaces_) {
    for (const net::Prefix6& own : interface.addresses6) {
      Packet* pkt = ctx.originate(icmp6::kNeighbourFrameBytes);
      if (pkt == nullptr) return;
      icmp6::write_neighbour(pkt->data(), {.type = icmp6::kAdvertisement,
                                           .flags = icmp6::kIsRouter | icmp6::kOverrides,
                                           .dst_mac = net::group_mac(net::kAllNodes),
                                           .own_mac = interface.mac,
                                           .src = own.address,
                                           .dst = net::kAllNodes,
                                           .target = own.address});
      send(ctx, interface.index, pkt);
    }
  }
}

void Neighbour6Resolver::housekeep(Context& ctx, uint64_t budget_ns) noexcept {
  if (is_announcing_) announce(ctx);
  advertiser_.run(
      ctx, [](Context& to, uint16_t interface, Packet* pkt) noexcept { send(to, interface, pkt); });
  NeighbourKeeper::housekeep(ctx, budget_ns);
}

bool Neighbour6Resolver::adopt(Neighbour6Resolver& old) noexcept {
  const bool is_same = NeighbourKeeper::adopt(old);
  if (is_same) is_announcing_ = false;
  return is_same;
}

}  // namespace batchplane
