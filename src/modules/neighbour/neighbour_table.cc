// SPDX-License-Identifier: BSD-3-Clause
// neighbour_table.cc - chained hash table and lists of held packets, in arrays of fixed size.
#include "modules/neighbour/neighbour_table.h"

#include <bit>
#include <utility>

namespace batchplane {
namespace {
// Entries scanned for one to evict; bounds the time of a flood.
constexpr uint32_t kRoomSteps = 16;

std::pair<uint64_t, uint64_t> words_of(uint32_t address) { return {0, address}; }
std::pair<uint64_t, uint64_t> words_of(const net::Address6& address) {
  return {address.high, address.low};
}
void set_words(uint32_t& address, uint64_t /*high*/, uint64_t low) {
  address = static_cast<uint32_t>(low);
}
void set_words(net::Address6& address, uint64_t high, uint64_t low) { address = {high, low}; }
}  // namespace

const char* neighbour_state_name(NeighbourState state) {
  static constexpr const char* kNames[] = {"free", "unresolved", "reachable", "probing", "static"};
  return kNames[static_cast<uint32_t>(state)];
}

template <class Address>
NeighbourTableOf<Address>::NeighbourTableOf(uint32_t max_neighbours, uint32_t max_held_pkts)
    : entries_(max_neighbours),
      buckets_(std::bit_ceil(2 * max_neighbours), kNone),
      held_(max_held_pkts),
      published_(std::make_unique<Published[]>(max_neighbours)) {
  for (uint32_t i = max_neighbours; i-- > 0;) {
    entries_[i].next = free_entry_;
    free_entry_ = i;
  }
  for (uint32_t i = max_held_pkts; i-- > 0;) {
    held_[i].next = free_held_;
    free_held_ = i;
  }
}

template <class Address>
uint32_t NeighbourTableOf<Address>::bucket_of(uint16_t interface, const Address& address) const {
  const auto [high, low] = words_of(address);
  const uint64_t key = low ^ uint64_t { interface } << 32 ^ high * 0xbf58476d1ce4e5b9ULL;
  return static_cast<uint32_t>((key * 0x9e3779b97f4a7c15ULL) >> 32) &
         static_cast<uint32_t>(buckets_.size() - 1);
}

template <class Address>
uint32_t NeighbourTableOf<Address>::find(uint16_t interface, const Address& address) const {
  for (uint32_t i = buckets_[bucket_of(interface, address)]; i != kNone; i = entries_[i].next) {
    if (entries_[i].address == address && entries_[i].interface == interface) return i;
  }
  return kNone;
}

template <class Address>
uint32_t NeighbourTableOf<Address>::make_room() {
  for (uint32_t step = 0; step < kRoomSteps; ++step) {
    hand_ = hand_ + 1 < capacity() ? hand_ + 1 : 0;
    const Neighbour& entry = entries_[hand_];
    if (entry.state == NeighbourState::kFree || entry.state == NeighbourState::kStatic) continue;
    if (entry.n_held != 0 || entry.is_used) continue;
    remove(hand_);
    return free_entry_;
  }
  return kNone;
}

template <class Address>
uint32_t NeighbourTableOf<Address>::add(uint16_t interface, const Address& address) {
  const uint32_t index = free_entry_ != kNone ? free_entry_ : make_room();
  if (index == kNone) return kNone;
  Neighbour& entry = entries_[index];
  free_entry_ = entry.next;
  entry = Neighbour{.address = address, .interface = interface};
  uint32_t& bucket = buckets_[bucket_of(interface, address)];
  entry.next = bucket;
  bucket = index;
  ++size_;
  set_state(index, NeighbourState::kUnresolved);
  return index;
}

template <class Address>
void NeighbourTableOf<Address>::remove(uint32_t index) {
  Neighbour& entry = entries_[index];
  uint32_t* link = &buckets_[bucket_of(entry.interface, entry.address)];
  while (*link != index) link = &entries_[*link].next;
  *link = entry.next;
  set_state(index, NeighbourState::kFree);
  entry.next = free_entry_;
  free_entry_ = index;
  --size_;
}

template <class Address>
void NeighbourTableOf<Address>::set_state(uint32_t index, NeighbourState state) {
  Neighbour& entry = entries_[index];
  n_unresolved_ -= entry.state == NeighbourState::kUnresolved ? 1 : 0;
  n_unresolved_ += state == NeighbourState::kUnresolved ? 1 : 0;
  entry.state = state;
  publish(index);
}

template <class Address>
void NeighbourTableOf<Address>::publish(uint32_t index) {
  const Neighbour& entry = entries_[index];
  Published& copy = published_[index];
  uint64_t mac = 0;
  std::memcpy(&mac, entry.mac.data(), 6);
  copy.version.fetch_add(1);
  const auto [high, low] = words_of(entry.address);
  copy.where.store(uint64_t{entry.interface} << 8 | static_cast<uint64_t>(entry.state));
  copy.high.store(high);
  copy.low.store(low);
  copy.mac.store(mac);
  copy.version.fetch_add(1);
}

template <class Address>
bool NeighbourTableOf<Address>::hold(uint32_t index, Packet* pkt) {
  if (free_held_ == kNone) return false;
  const uint32_t place = free_held_;
  free_held_ = held_[place].next;
  held_[place] = {pkt, kNone};
  Neighbour& entry = entries_[index];
  if (entry.n_held++ == 0) {
    entry.held_first = place;
  } else {
    held_[entry.held_last].next = place;
  }
  entry.held_last = place;
  n_held_.store(n_held() + 1, std::memory_order_relaxed);
  return true;
}

template <class Address>
void NeighbourTableOf<Address>::pop_held(uint32_t index) {
  Neighbour& entry = entries_[index];
  const uint32_t place = entry.held_first;
  entry.held_first = held_[place].next;
  --entry.n_held;
  held_[place] = {nullptr, free_held_};
  free_held_ = place;
  n_held_.store(n_held() - 1, std::memory_order_relaxed);
}

template <class Address>
std::vector<NeighbourViewOf<Address>> NeighbourTableOf<Address>::list() const {
  std::vector<NeighbourView> found;
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    const Published& copy = published_[i];
    uint64_t where = 0;
    uint64_t mac = 0;
    uint64_t high = 0;
    uint64_t low = 0;
    uint32_t version = 0;
    do {
      version = copy.version.load();
      where = copy.where.load();
      high = copy.high.load();
      low = copy.low.load();
      mac = copy.mac.load();
    } while ((version & 1) != 0 || copy.version.load() != version);
    const auto state = static_cast<NeighbourState>(where & 0xff);
    if (state == NeighbourState::kFree) continue;
    NeighbourView view{{}, static_cast<uint16_t>(where >> 8), state, {}};
    set_words(view.address, high, low);
    std::memcpy(view.mac.data(), &mac, 6);
    found.push_back(view);
  }
  return found;
}

template class NeighbourTableOf<uint32_t>;
template class NeighbourTableOf<net::Address6>;

}  // namespace batchplane
