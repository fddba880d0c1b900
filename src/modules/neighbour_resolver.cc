// SPDX-License-Identifier: BSD-3-Clause
// neighbour_resolver.cc - asks for MACs, lets packets wait for them, ages what was learnt.
#include "modules/neighbour_resolver.h"

#include <algorithm>

#include "modules/neighbour_reasons.h"

namespace batchplane {
namespace {

constexpr net::Mac kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr uint32_t kScanShare = 10;  // part of the table looked at per tick

}  // namespace

NeighbourResolver::NeighbourResolver(const std::vector<Interface>& interfaces, const Limits& limits,
                                     bool is_announcing)
    : interfaces_(interfaces),
      limits_(limits),
      is_announcing_(is_announcing),
      table_(std::make_unique<NeighbourTable>(limits.max_neighbours, limits.max_hold_pkts)) {}

const net::Prefix4* NeighbourResolver::own_address(uint16_t interface, uint32_t address) const {
  for (const net::Prefix4& own : interfaces_[interface].addresses) {
    if (own.address == address) return &own;
  }
  return nullptr;
}

uint32_t NeighbourResolver::source_for(uint16_t interface, uint32_t address) const {
  const auto& all = interfaces_[interface].addresses;
  for (const net::Prefix4& own : all) {
    if (((own.address ^ address) & net::mask4(own.length)) == 0) return own.address;
  }
  return all.empty() ? 0 : all[0].address;
}

bool NeighbourResolver::is_on_link(uint16_t interface, uint32_t address) const {
  return std::ranges::any_of(interfaces_[interface].addresses, [&](const net::Prefix4& own) {
    return ((own.address ^ address) & net::mask4(own.length)) == 0;
  });
}

void NeighbourResolver::hold(Context& ctx, Batch& batch, uint32_t i, uint32_t index,
                             uint16_t interface, uint32_t address) noexcept {
  if (address >= 0xe0000000) {  // multicast and class E have no neighbours
    ctx.drop(batch, i, neighbour::kUnreachable);
    return;
  }
  if (index == NeighbourTable::kNone) {
    // Unresolved ones get a quarter of the table, so that a scan cannot push out live neighbours.
    const bool has_room = table_->n_unresolved() < std::max(table_->capacity() / 4, 1U);
    index = has_room ? table_->add(interface, address) : NeighbourTable::kNone;
    if (index == NeighbourTable::kNone) {
      ctx.drop(batch, i, neighbour::kTableFull);
      return;
    }
    (*table_)[index].is_used = true;
    ask(ctx, index);
  }
  if ((*table_)[index].n_held >= limits_.hold_pkts || !table_->hold(index, batch[i])) {
    ctx.drop(batch, i, neighbour::kHoldFull);
    return;
  }
  ctx.keep(batch, i);
}

void NeighbourResolver::ask(Context& ctx, uint32_t index) noexcept {
  Neighbour& entry = (*table_)[index];
  entry.at_ns = ctx.now_ns;
  ++entry.tries;
  const bool is_known = entry.has_mac() && entry.tries < limits_.max_tries;
  send_request(ctx, entry.interface, is_known ? entry.mac : kBroadcast,
               source_for(entry.interface, entry.address), entry.address);
}

void NeighbourResolver::send_request(Context& ctx, uint16_t interface, const net::Mac& dst,
                                     uint32_t source, uint32_t wanted) noexcept {
  Packet* pkt = ctx.originate(arp::kFrameBytes);
  if (pkt == nullptr) return;  // counted as a try: the next one follows after retry_ns
  arp::write_request(pkt->data(), dst, interfaces_[interface].mac, source, wanted);
  if (!ctx.emit(interface, pkt) && !ctx.drop_owned(pkt, neighbour::kHoldFull)) ctx.free(pkt);
}

bool NeighbourResolver::adopt(NeighbourResolver& old) noexcept {
  const bool is_same =
      std::ranges::equal(interfaces_, old.interfaces_, {}, &Interface::name, &Interface::name) &&
      table_->capacity() == old.table_->capacity() && table_->max_held() == old.table_->max_held();
  if (!is_same) return false;
  std::swap(table_, old.table_);
  is_announcing_ = false;
  return true;
}

void NeighbourResolver::give_up_held(const std::function<void(Packet*)>& take) {
  for (uint32_t i = 0; i < table_->capacity(); ++i) {
    while (Packet* pkt = table_->first_held(i)) {
      table_->pop_held(i);
      take(pkt);
    }
  }
}

void NeighbourResolver::resolve(Context& ctx, uint32_t index, const net::Mac& mac,
                                NeighbourState state) noexcept {
  Neighbour& entry = (*table_)[index];
  entry.mac = mac;
  entry.tries = 0;
  entry.is_used = false;
  entry.at_ns = ctx.now_ns;
  table_->set_state(index, state);
  send_held(ctx, index);
}

void NeighbourResolver::send_held(Context& ctx, uint32_t index) noexcept {
  const Neighbour& entry = (*table_)[index];
  while (Packet* pkt = table_->first_held(index)) {
    if (!ctx.emit(entry.interface, pkt)) return;
    write_header(*pkt, pkt->meta().l3_offset_bytes, entry.interface, entry.mac);
    table_->pop_held(index);
  }
}

void NeighbourResolver::give_up(Context& ctx, uint32_t index) noexcept {
  while (Packet* pkt = table_->first_held(index)) {
    if (!ctx.drop_owned(pkt, neighbour::kUnreachable)) return;  // the rest at the next tick
    table_->pop_held(index);
  }
  table_->remove(index);
}

void NeighbourResolver::age(Context& ctx, uint32_t index) noexcept {
  Neighbour& entry = (*table_)[index];
  if (entry.n_held != 0 && entry.has_mac()) send_held(ctx, index);
  const uint64_t age_ns = ctx.now_ns > entry.at_ns ? ctx.now_ns - entry.at_ns : 0;
  switch (entry.state) {
    case NeighbourState::kUnresolved:
    case NeighbourState::kProbing:
      if (age_ns < limits_.retry_ns) return;
      if (entry.tries >= limits_.max_tries) return give_up(ctx, index);
      return ask(ctx, index);
    case NeighbourState::kReachable:
      if (age_ns < limits_.reachable_ns) return;
      if (!entry.is_used) return give_up(ctx, index);
      entry.is_used = false;
      table_->set_state(index, NeighbourState::kProbing);
      return ask(ctx, index);
    case NeighbourState::kFree:
    case NeighbourState::kStatic:
      return;
  }
}

void NeighbourResolver::announce(Context& ctx) noexcept {
  is_announcing_ = false;
  for (const Interface& interface : interfaces_) {
    for (const net::Prefix4& own : interface.addresses) {
      send_request(ctx, interface.index, kBroadcast, own.address, own.address);
    }
  }
}

void NeighbourResolver::forget(uint32_t index) noexcept {
  Neighbour& entry = (*table_)[index];
  if (entry.n_held == 0) return table_->remove(index);
  // Packets wait for it. An unresolved one is not known anyway: its time-out ends it.
  if (!entry.has_mac()) return;
  entry.tries = 0;
  entry.at_ns = 0;
  table_->set_state(index, NeighbourState::kProbing);
}

void NeighbourResolver::obey(const NeighbourOrder& order) noexcept {
  uint32_t index = table_->find(order.interface, order.address);
  if (order.is_delete) {
    if (index != NeighbourTable::kNone) forget(index);
    return;
  }
  if (index == NeighbourTable::kNone) index = table_->add(order.interface, order.address);
  if (index == NeighbourTable::kNone) return;
  (*table_)[index].mac = order.mac;
  table_->set_state(index, NeighbourState::kStatic);  // held packets leave when it is aged next
}

void NeighbourResolver::housekeep(Context& ctx, uint64_t budget_ns) noexcept {
  if (is_announcing_) announce(ctx);
  // About 20 ns an entry.
  const auto affordable = static_cast<uint32_t>(std::clamp<uint64_t>(budget_ns / 20, 16, 1U << 20));
  const uint32_t share = table_->capacity() / kScanShare + 1;
  for (uint32_t n = std::min(share, affordable); n > 0; --n) {
    cursor_ = cursor_ + 1 < table_->capacity() ? cursor_ + 1 : 0;
    if ((*table_)[cursor_].state != NeighbourState::kFree) age(ctx, cursor_);
  }
}

}  // namespace batchplane
