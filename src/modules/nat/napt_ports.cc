// SPDX-License-Identifier: BSD-3-Clause
// napt_ports.cc - two-level bitmaps of ports, and the set of external addresses.
#include "modules/nat/napt_ports.h"

#include <bit>
#include <utility>

#include "base/net.h"
#include "modules/headers/flow_key.h"

namespace batchplane::nat {

PortSpace port_space_of(uint8_t proto) {
  if (proto == net::kProtoTcp) return PortSpace::kTcp;
  return proto == net::kProtoUdp ? PortSpace::kUdp : PortSpace::kIcmp;
}

PortMap::PortMap(uint32_t first, uint32_t last) : n_all_(last - first + 1) {
  for (uint32_t port = 0; port < 65536; ++port) {
    if (port < first || port > last) mark(port);
  }
}

void PortMap::mark(uint32_t port) {
  uint64_t& word = taken_[port / 64];
  word |= 1ULL << (port % 64);
  if (word == ~0ULL) full_[port / 4096] |= 1ULL << (port / 64 % 64);
}

uint32_t PortMap::take(uint32_t wanted, Rng& rng) noexcept {
  if (is_exhausted()) return kNoPort;
  uint32_t port = wanted;
  if (is_taken(wanted)) {
    // RFC 6056: unpredictable ports. Searches from a random port: the rest of its word, then the
    // words after it, and finally those before it, including the start of its own.
    const auto start = static_cast<uint32_t>(rng.below(65536));
    uint32_t word = start / 64;
    uint64_t open = ~taken_[word] & (~0ULL << (start % 64));
    for (uint32_t step = 0; open == 0; ++step) {
      const uint32_t group = (start / 4096 + step) % full_.size();
      uint64_t candidates = ~full_[group];
      if (step == 0) candidates &= start / 64 % 64 == 63 ? 0 : ~0ULL << (start / 64 % 64 + 1);
      if (candidates == 0) continue;
      word = group * 64 + static_cast<uint32_t>(std::countr_zero(candidates));
      open = ~taken_[word];
    }
    port = word * 64 + static_cast<uint32_t>(std::countr_zero(open));
  }
  mark(port);
  n_used_.add(1);
  return port;
}

void PortMap::give_back(uint32_t port) noexcept {
  taken_[port / 64] &= ~(1ULL << (port % 64));
  full_[port / 4096] &= ~(1ULL << (port / 64 % 64));
  n_used_.set(n_used_.value() - 1);
}

// ICMP has no ports: all its ids may be used.
External::External(uint32_t raw, uint32_t first_port, uint32_t last_port)
    : address_raw(raw),
      maps{PortMap(first_port, last_port), PortMap(first_port, last_port), PortMap(0, 65535)} {}

bool External::is_unused() const {
  return maps[0].n_used() + maps[1].n_used() + maps[2].n_used() == 0;
}

ExternalPool::ExternalPool(const Addresses& addresses, uint32_t first_port, uint32_t last_port) {
  for (const uint32_t address : addresses) {
    auto external = std::make_unique<External>(net::be32(address), first_port, last_port);
    (void)add(external);
  }
}

ExternalPool::~ExternalPool() {
  for (const std::atomic<External*>& slot : slots_) delete slot.load(std::memory_order_relaxed);
}

void ExternalPool::index_all() noexcept {
  places_.fill(Place{});
  n_open_ = 0;
  for (uint32_t i = 0; i < n_slots(); ++i) {
    if (at(i).is_withdrawn) continue;
    open_[n_open_++] = static_cast<uint16_t>(i);
    uint32_t place = home_of(at(i).address_raw);
    while (places_[place].index != kNowhere) place = (place + 1) % kPlaces;
    places_[place] = {at(i).address_raw, i};
  }
}

uint32_t ExternalPool::choose(uint64_t hash, PortSpace space) const noexcept {
  if (n_open_ == 0) return kNoExternal;
  // The hashes of neighbouring addresses are a fixed step apart, and with some seeds the step skips
  // a quarter of the external addresses. Multiplying the hash with itself breaks the pattern.
  const uint64_t spread = mix_words(hash, hash >> 32, 0);
  const auto first = static_cast<uint32_t>((spread >> 32) * n_open_ >> 32);
  for (uint32_t step = 0; step < n_open_; ++step) {
    const uint32_t index = open_[(first + step) % n_open_];
    if (!at(index).ports(space).is_exhausted()) return index;
  }
  return kNoExternal;
}

bool ExternalPool::add(std::unique_ptr<External>& external) noexcept {
  const uint32_t n = n_slots();
  uint32_t free_slot = n;
  for (uint32_t i = 0; i < n; ++i) {
    External& here = at(i);
    if (here.address_raw == external->address_raw) {
      here.is_withdrawn = false;
      index_all();
      return true;
    }
    if (here.is_withdrawn && here.is_unused()) free_slot = i;
  }
  if (free_slot == kMaxExternal) return false;
  external.reset(slots_[free_slot].exchange(external.release(), std::memory_order_acq_rel));
  if (free_slot == n) n_slots_.store(n + 1, std::memory_order_release);
  index_all();
  return true;
}

void ExternalPool::withdraw(uint32_t address_raw) noexcept {
  const uint32_t index = index_of(address_raw);
  if (index == kNoExternal) return;
  at(index).is_withdrawn = true;
  index_all();
}

void ExternalPool::change_to(ExternalPool& next) noexcept {
  for (uint32_t i = 0; i < n_slots(); ++i) {
    at(i).is_withdrawn = next.index_of(at(i).address_raw) == kNoExternal;
  }
  index_all();
  for (uint32_t i = 0; i < next.n_slots(); ++i) {
    External* wanted = next.slots_[i].load(std::memory_order_relaxed);
    if (wanted->is_withdrawn || index_of(wanted->address_raw) != kNoExternal) continue;
    std::unique_ptr<External> external(wanted);
    (void)add(external);
    // Any address that did not fit stays with `next`, which the control thread frees.
    next.slots_[i].store(external.release(), std::memory_order_relaxed);
  }
}

}  // namespace batchplane::nat
