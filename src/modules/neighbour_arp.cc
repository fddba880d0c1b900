// SPDX-License-Identifier: BSD-3-Clause
// neighbour_arp.cc - what ARP messages do: they are answered, learnt from, or dropped.
#include "modules/neighbour_reasons.h"
#include "modules/neighbour_resolver.h"

namespace batchplane {

void NeighbourResolver::handle_arp(Context& ctx, Batch& batch, uint32_t i, uint32_t l3) noexcept {
  Packet& pkt = *batch[i];
  uint8_t* message = pkt.data() + l3;
  const uint16_t interface = pkt.meta().in_interface;
  if (interface >= interfaces_.size()) {
    ctx.drop(batch, i, neighbour::kNoInterface);
    return;
  }
  if (l3 < net::kEthBytes || !arp::is_valid(message, pkt.len_bytes() - l3)) {
    ctx.drop(batch, i, neighbour::kArpMalformed);
    return;
  }
  const uint32_t sender = net::load32(message + arp::kSenderIp);
  const uint32_t target = net::load32(message + arp::kTargetIp);
  net::Mac mac;
  std::memcpy(mac.data(), message + arp::kSenderMac, 6);
  if (sender != 0 && own_address(interface, sender) != nullptr) {
    ctx.drop(batch, i,
             mac == interfaces_[interface].mac ? neighbour::kArpDone : neighbour::kArpConflict);
    return;
  }
  const bool is_for_us = own_address(interface, target) != nullptr;
  const bool is_request = net::load16(message + arp::kOperation) == arp::kRequest;
  // Others are learnt only when they talk to us; who is known already may always correct himself.
  learn(ctx, interface, sender, mac, is_for_us && is_request);
  if (!is_request || !is_for_us) {
    ctx.drop(batch, i, neighbour::kArpDone);
    return;
  }
  arp::write_message(message, arp::kReply, interfaces_[interface].mac, target, mac, sender);
  if (l3 > net::kEthBytes) pkt.pull_front(l3 - net::kEthBytes);
  pkt.meta().l3_offset_bytes = net::kEthBytes;
  arp::write_eth(pkt.data(), mac, interfaces_[interface].mac, net::kTypeArp);
  ctx.gates[i] = interface;
}

void NeighbourResolver::learn(Context& ctx, uint16_t interface, uint32_t address,
                              const net::Mac& mac, bool may_add) noexcept {
  if (address == 0 || address >= 0xe0000000) return;
  uint32_t index = table_->find(interface, address);
  if (index == NeighbourTable::kNone) {
    if (!may_add || !is_on_link(interface, address)) return;
    index = table_->add(interface, address);
    if (index == NeighbourTable::kNone) return;
  }
  Neighbour& entry = (*table_)[index];
  if (entry.state == NeighbourState::kStatic) return;
  resolve(ctx, index, mac, NeighbourState::kReachable);
}

}  // namespace batchplane
