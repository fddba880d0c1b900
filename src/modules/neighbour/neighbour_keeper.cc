// SPDX-License-Identifier: BSD-3-Clause
// neighbour_keeper.cc - sends requests for MACs, holds packets meanwhile, and ages entries.
#include "modules/neighbour/neighbour_keeper.h"

#include <algorithm>

#include "modules/neighbour/neighbour_reasons.h"

namespace batchplane {
namespace {

constexpr uint32_t kScanShare = 10;  // 1/10 of the table is scanned per tick

}  // namespace

template <class Family>
NeighbourKeeper<Family>::NeighbourKeeper(const std::vector<Interface>& interfaces,
                                         const NeighbourLimits& limits)
    : interfaces_(interfaces),
      limits_(limits),
      table_(std::make_unique<Table>(limits.max_neighbours, limits.max_hold_pkts)) {}

template <class Family>
const typename Family::Prefix* NeighbourKeeper<Family>::own_address(uint16_t interface,
                                                                    const Address& address) const {
  for (const Prefix& own : Family::addresses(interfaces_[interface])) {
    if (own.address == address) return &own;
  }
  return nullptr;
}

template <class Family>
typename Family::Address NeighbourKeeper<Family>::source_for(uint16_t interface,
                                                             const Address& address) const {
  const auto& all = Family::addresses(interfaces_[interface]);
  for (const Prefix& own : all) {
    if (Family::is_zero((own.address ^ address) & Family::mask(own.length))) return own.address;
  }
  return all.empty() ? Address{} : all[0].address;
}

template <class Family>
bool NeighbourKeeper<Family>::is_on_link(uint16_t interface, const Address& address) const {
  return std::ranges::any_of(Family::addresses(interfaces_[interface]), [&](const Prefix& own) {
    return Family::is_zero((own.address ^ address) & Family::mask(own.length));
  });
}

template <class Family>
void NeighbourKeeper<Family>::hold(Context& ctx, Batch& batch, uint32_t i, uint32_t index,
                                   uint16_t interface, const Address& address) noexcept {
  if (!Family::is_unicast(address)) {  // multicast and broadcast
    ctx.drop(batch, i, neighbour::kUnreachable);
    return;
  }
  if (index == kNoNeighbour) {
    // Unresolved entries may fill a quarter of the table, so that an address scan cannot evict live
    // neighbours.
    const bool has_room = table_->n_unresolved() < std::max(table_->capacity() / 4, 1U);
    index = has_room ? table_->add(interface, address) : kNoNeighbour;
    if (index == kNoNeighbour) {
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

template <class Family>
void NeighbourKeeper<Family>::ask(Context& ctx, uint32_t index) noexcept {
  Neighbour& entry = (*table_)[index];
  entry.at_ns = ctx.now_ns;
  ++entry.tries;
  const bool is_known = entry.has_mac() && entry.tries < limits_.max_tries;
  solicit(ctx, entry.interface, is_known ? &entry.mac : nullptr, entry.address);
}

template <class Family>
void NeighbourKeeper<Family>::send(Context& ctx, uint16_t interface, Packet* pkt) noexcept {
  if (!ctx.emit(interface, pkt) && !ctx.drop_owned(pkt, neighbour::kHoldFull)) ctx.free(pkt);
}

template <class Family>
bool NeighbourKeeper<Family>::adopt(NeighbourKeeper& old) noexcept {
  const bool is_same =
      std::ranges::equal(interfaces_, old.interfaces_, {}, &Interface::name, &Interface::name) &&
      table_->capacity() == old.table_->capacity() && table_->max_held() == old.table_->max_held();
  if (!is_same) return false;
  std::swap(table_, old.table_);
  return true;
}

template <class Family>
void NeighbourKeeper<Family>::give_up_held(const std::function<void(Packet*)>& take) {
  for (uint32_t i = 0; i < table_->capacity(); ++i) {
    while (Packet* pkt = table_->first_held(i)) {
      table_->pop_held(i);
      take(pkt);
    }
  }
}

template <class Family>
void NeighbourKeeper<Family>::resolve(Context& ctx, uint32_t index, const net::Mac& mac,
                                      NeighbourState state) noexcept {
  Neighbour& entry = (*table_)[index];
  entry.mac = mac;
  entry.tries = 0;
  entry.is_used = false;
  entry.at_ns = ctx.now_ns;
  table_->set_state(index, state);
  send_held(ctx, index);
}

template <class Family>
void NeighbourKeeper<Family>::send_held(Context& ctx, uint32_t index) noexcept {
  const Neighbour& entry = (*table_)[index];
  while (Packet* pkt = table_->first_held(index)) {
    if (!ctx.emit(entry.interface, pkt)) return;
    write_header(*pkt, pkt->meta().l3_offset_bytes, entry.interface, entry.mac);
    table_->pop_held(index);
  }
}

template <class Family>
void NeighbourKeeper<Family>::give_up(Context& ctx, uint32_t index) noexcept {
  while (Packet* pkt = table_->first_held(index)) {
    if (!ctx.drop_owned(pkt, neighbour::kUnreachable)) return;  // the rest at the next tick
    table_->pop_held(index);
  }
  table_->remove(index);
}

template <class Family>
void NeighbourKeeper<Family>::age(Context& ctx, uint32_t index) noexcept {
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

template <class Family>
void NeighbourKeeper<Family>::forget(uint32_t index) noexcept {
  Neighbour& entry = (*table_)[index];
  if (entry.n_held == 0) return table_->remove(index);
  // Packets wait for this entry, so keep it. If unresolved, there is no MAC to forget, and it times
  // out by itself.
  if (!entry.has_mac()) return;
  entry.tries = 0;
  entry.at_ns = 0;
  table_->set_state(index, NeighbourState::kProbing);
}

template <class Family>
void NeighbourKeeper<Family>::obey(const NeighbourOrderOf<Address>& order) noexcept {
  uint32_t index = table_->find(order.interface, order.address);
  if (order.is_delete) {
    if (index != kNoNeighbour) forget(index);
    return;
  }
  if (index == kNoNeighbour) index = table_->add(order.interface, order.address);
  if (index == kNoNeighbour) return;
  (*table_)[index].mac = order.mac;
  table_->set_state(index, NeighbourState::kStatic);  // held packets leave at its next age()
}

template <class Family>
void NeighbourKeeper<Family>::housekeep(Context& ctx, uint64_t budget_ns) noexcept {
  // About 20 ns per entry.
  const auto affordable = static_cast<uint32_t>(std::clamp<uint64_t>(budget_ns / 20, 16, 1U << 20));
  const uint32_t share = table_->capacity() / kScanShare + 1;
  for (uint32_t n = std::min(share, affordable); n > 0; --n) {
    cursor_ = cursor_ + 1 < table_->capacity() ? cursor_ + 1 : 0;
    if ((*table_)[cursor_].state != NeighbourState::kFree) age(ctx, cursor_);
  }
}

template <class Family>
void NeighbourKeeper<Family>::learn(Context& ctx, uint16_t interface, const Address& address,
                                    const net::Mac& mac, bool may_add) noexcept {
  if (!Family::is_unicast(address)) return;
  uint32_t index = table_->find(interface, address);
  if (index == kNoNeighbour) {
    if (!may_add || !is_on_link(interface, address)) return;
    index = table_->add(interface, address);
    if (index == kNoNeighbour) return;
  }
  Neighbour& entry = (*table_)[index];
  if (entry.state == NeighbourState::kStatic) return;
  resolve(ctx, index, mac, NeighbourState::kReachable);
}

template class NeighbourKeeper<Ipv4Family>;
template class NeighbourKeeper<Ipv6Family>;

}  // namespace batchplane
