// SPDX-License-Identifier: BSD-3-Clause
// load_balancer_table.cc - looks up the service of a packet: exact, then any port, then any
// protocol.
#include "modules/balance/load_balancer_table.h"

#include <algorithm>

namespace batchplane {
namespace {

constexpr uint64_t kExact = ~0ULL;
constexpr uint64_t kAnyPort = ~0xffffULL;
constexpr uint64_t kAnyProto = ~0xffff'ffffULL;

}  // namespace

void LoadBalancerTable::note_mask(Masks& masks, uint64_t word) {
  uint64_t mask = kExact;
  if ((word & 0xffff) == 0) mask = (word >> 16 & 0xffff) == 0 ? kAnyProto : kAnyPort;
  const auto end = masks.in_use.begin() + masks.n;
  if (std::find(masks.in_use.begin(), end, mask) != end) return;
  masks.in_use[masks.n++] = mask;
  // A more specific mask is a greater number, so it sorts first.
  std::sort(masks.in_use.begin(), masks.in_use.begin() + masks.n, std::greater<>());
}

void LoadBalancerTable::find_bulk(const Key4* keys, uint32_t n, uint32_t* found) const noexcept {
  if (masks4_.n != 0 && masks4_.in_use[0] == kExact) [[likely]] {
    services4_.find_bulk(keys, n, found);
  } else {
    std::fill_n(found, n, FlatTable<1>::kMissing);
    if (masks4_.n != 0) find_rest(keys, n, masks4_.in_use[0], found);
  }
  for (uint32_t m = 1; m < masks4_.n; ++m) find_rest(keys, n, masks4_.in_use[m], found);
  for (uint32_t i = 0; i < n; ++i) {
    found[i] = found[i] == FlatTable<1>::kMissing ? kNoService : found[i];
  }
}

void LoadBalancerTable::find_rest(const Key4* keys, uint32_t n, uint64_t mask,
                                  uint32_t* found) const noexcept {
  Key4 masked[exec::kMaxBatchPkts];
  uint32_t at[exec::kMaxBatchPkts];
  uint32_t values[exec::kMaxBatchPkts];
  uint32_t n_missing = 0;
  for (uint32_t i = 0; i < n; ++i) {
    masked[n_missing] = {keys[i][0] & mask};
    at[n_missing] = i;
    n_missing += found[i] == FlatTable<1>::kMissing ? 1 : 0;
  }
  if (n_missing == 0) return;
  services4_.find_bulk(masked, n_missing, values);
  for (uint32_t i = 0; i < n_missing; ++i) found[at[i]] = values[i];
}

uint32_t LoadBalancerTable::find(const Key4& key) const noexcept {
  uint32_t found;
  find_bulk(&key, 1, &found);
  return found;
}

uint32_t LoadBalancerTable::find(const Key6& key) const noexcept {
  for (uint32_t m = 0; m < masks6_.n; ++m) {
    const uint32_t found = services6_.find({key[0], key[1], key[2] & masks6_.in_use[m]});
    if (found != FlatTable<3>::kMissing) return found;
  }
  return kNoService;
}

size_t LoadBalancerTable::size_bytes() const {
  size_t bytes = services4_.size_bytes() + services6_.size_bytes() + views_.size() * sizeof(View) +
                 actions_.size() * sizeof(BackendAction);
  for (const Slots& slots : owned_) bytes += slots->size() * sizeof(uint16_t);
  return bytes;
}

}  // namespace batchplane
