// SPDX-License-Identifier: BSD-3-Clause
// napt_table.cc - opens, finds and closes connections.
#include "modules/nat/napt_table.h"

#include <utility>

namespace batchplane::nat {
namespace {

// Connections evicted to obtain one port; the ones evicted may use ports of other addresses.
constexpr uint32_t kEvictTries = 4;

uint64_t end_of(uint32_t address_raw, uint16_t port, uint8_t proto) {
  return uint64_t{proto} << 48 | uint64_t{port} << 32 | address_raw;
}
uint32_t address_of(uint64_t end) { return static_cast<uint32_t>(end); }
uint16_t port_of(uint64_t end) { return static_cast<uint16_t>(end >> 32); }
uint8_t proto_of(uint64_t end) { return static_cast<uint8_t>(end >> 48); }

}  // namespace

// Peers and their index are always allocated, since a new pipeline may change the filtering.
NaptTable::NaptTable(const NaptLimits& limits, const NaptStateRules& rules,
                     std::unique_ptr<ExternalPool> pool, uint64_t seed)
    : limits_(limits),
      capacity_(limits.max_connections),
      pool_(std::move(pool)),
      sessions_(size_t{capacity_} + 1),
      mappings_(size_t{capacity_} + 1),
      hosts_(size_t{capacity_} + 1),
      peers_(size_t{capacity_} + 1),
      sessions_by_key_(2 * capacity_, seed),
      mappings_by_end_(2 * capacity_, seed),
      hosts_by_address_(capacity_, seed),
      peers_by_key_(capacity_, seed),
      rng_(seed),
      timers_(sessions_, rules) {
  for (uint32_t i = capacity_; i != 0; --i) {
    sessions_[i].timer_next = std::exchange(free_session_, i);
    mappings_[i].next_free = std::exchange(free_mapping_, i);
    hosts_[i].n_sessions = std::exchange(free_host_, i);
    peers_[i].next_free = std::exchange(free_peer_, i);
  }
}

uint32_t NaptTable::find(const NaptKey& key, uint32_t now) noexcept {
  const uint32_t found = sessions_by_key_.find(
      hash(key), [&](uint32_t n) { return sessions_[n >> 1].wire[n & 1] == key; });
  if (found == 0 || !timers_.is_expired(sessions_[found >> 1], now)) return found;
  close(found >> 1);
  return 0;
}

uint32_t NaptTable::find_mapping(uint32_t address_raw, uint16_t port, uint8_t proto) noexcept {
  const uint64_t end = end_of(address_raw, port, proto);
  return mappings_by_end_.find(mappings_by_end_.hash(end, kIn), [&](uint32_t n) {
    return (n & 1) == kIn && mappings_[n >> 1].outside == end;
  }) >> 1;
}

uint32_t NaptTable::open_outbound(const NaptKey& key, NaptState state, uint8_t seen, uint32_t now,
                                  Refusal& why) noexcept {
  if (free_session(why) == 0) return 0;
  const uint64_t inside = end_of(key.src(), key.src_port(), key.proto());
  uint32_t mapping = mappings_by_end_.find(mappings_by_end_.hash(inside, kOut), [&](uint32_t n) {
    return (n & 1) == kOut && mappings_[n >> 1].inside == inside;
  }) >> 1;
  if (mapping == 0) {
    const uint32_t host = obtain_host(key.src(), port_space_of(key.proto()), why);
    if (host == 0) return 0;
    mapping = is_over_limit(host, why) ? 0 : obtain_mapping(key, host, why);
    if (mapping == 0) {
      if (hosts_[host].n_mappings == 0) release_host(host);
      return 0;
    }
  } else if (is_over_limit(mappings_[mapping].host, why)) {
    return 0;
  }
  const uint64_t outside = mappings_[mapping].outside;
  const uint16_t remote_port = key.proto() == net::kProtoIcmp ? port_of(outside) : key.dst_port();
  const NaptKey in =
      make_key(key.dst(), address_of(outside), remote_port, port_of(outside), key.proto());
  return 2 * start(key, in, mapping, state, seen, now) + kOut;
}

uint32_t NaptTable::open_inbound(const NaptKey& key, uint32_t mapping, NaptState state,
                                 uint32_t now, Refusal& why) noexcept {
  if (!admits(mapping, key.src())) {
    why = Refusal::kFilter;
    return 0;
  }
  if (is_over_limit(mappings_[mapping].host, why)) return 0;
  // Holds the mapping with an extra user, so that evicting a connection cannot release it.
  ++mappings_[mapping].n_sessions;
  const uint32_t place = free_session(why);
  --mappings_[mapping].n_sessions;
  if (place == 0) return 0;
  const uint64_t inside = mappings_[mapping].inside;
  const uint16_t remote_port = key.proto() == net::kProtoIcmp ? port_of(inside) : key.src_port();
  const NaptKey out =
      make_key(address_of(inside), key.src(), port_of(inside), remote_port, key.proto());
  const bool is_hairpin = pool_->index_of(key.src()) != kNoExternal;
  return 2 * start(out, key, mapping, state, is_hairpin ? kIsHairpin : 0, now) + kIn;
}

uint32_t NaptTable::free_session(Refusal& why) noexcept {
  if (free_session_ != 0) [[likely]]
    return free_session_;
  if (evict_oldest()) return free_session_;
  why = Refusal::kTable;
  return 0;
}

bool NaptTable::evict_oldest() noexcept {
  const uint32_t oldest = timers_.oldest_transitory();
  if (!limits_.may_evict || oldest == 0) return false;
  close(oldest);
  n_evicted_.add(1);
  return true;
}

bool NaptTable::is_over_limit(uint32_t host, Refusal& why) const noexcept {
  if (limits_.max_per_host == 0 || hosts_[host].n_sessions < limits_.max_per_host) return false;
  why = Refusal::kHost;
  return true;
}

// RFC 4787, REQ-2 (paired pooling): all mappings of a host use the same external address.
uint32_t NaptTable::obtain_host(uint32_t address_raw, PortSpace space, Refusal& why) noexcept {
  const uint64_t hash = hosts_by_address_.hash(address_raw, 0);
  const uint32_t found = hosts_by_address_.find(
      hash, [&](uint32_t n) { return hosts_[n].address_raw == address_raw; });
  if (found != 0) return found;
  uint32_t external = pool_->choose(hash, space);
  for (uint32_t i = 0; i < kEvictTries && external == kNoExternal && evict_oldest(); ++i) {
    external = pool_->choose(hash, space);
  }
  if (external == kNoExternal) {
    why = Refusal::kPorts;
    return 0;
  }
  const uint32_t host = free_host_;
  free_host_ = hosts_[host].n_sessions;
  hosts_[host] = {.address_raw = address_raw, .external = external};
  hosts_by_address_.insert(hash, host);
  n_hosts_.add(1);
  return host;
}

// Evicts a few of the oldest connections if needed, which may free a port of the host's external
// address.
uint32_t NaptTable::take_port(uint32_t host, PortSpace space, uint32_t wanted) noexcept {
  const uint32_t external = hosts_[host].external;
  uint32_t port = (*pool_)[external].ports(space).take(wanted, rng_);
  ++hosts_[host].n_mappings;  // keeps the host entry alive during eviction
  for (uint32_t i = 0; i < kEvictTries && port == kNoPort && evict_oldest(); ++i) {
    port = (*pool_)[external].ports(space).take(wanted, rng_);
  }
  --hosts_[host].n_mappings;
  return port;
}

uint32_t NaptTable::obtain_mapping(const NaptKey& key, uint32_t host, Refusal& why) noexcept {
  const uint32_t wanted = net::be16(key.src_port());
  const uint32_t port = take_port(host, port_space_of(key.proto()), wanted);
  if (port == kNoPort) {
    why = Refusal::kPorts;
    return 0;
  }
  const uint32_t external = hosts_[host].external;
  const uint32_t mapping = free_mapping_;
  free_mapping_ = mappings_[mapping].next_free;
  mappings_[mapping] = {.inside = end_of(key.src(), key.src_port(), key.proto()),
                        .outside = end_of((*pool_)[external].address_raw,
                                          net::be16(static_cast<uint16_t>(port)), key.proto()),
                        .host = host,
                        .external = external};
  ++hosts_[host].n_mappings;
  const NaptMapping& made = mappings_[mapping];
  mappings_by_end_.insert(mappings_by_end_.hash(made.inside, kOut), 2 * mapping + kOut);
  mappings_by_end_.insert(mappings_by_end_.hash(made.outside, kIn), 2 * mapping + kIn);
  n_mappings_.add(1);
  return mapping;
}

uint32_t NaptTable::start(const NaptKey& out, const NaptKey& in, uint32_t mapping, NaptState state,
                          uint8_t seen, uint32_t now) noexcept {
  const uint32_t index = free_session_;
  NaptSession& session = sessions_[index];
  free_session_ = session.timer_next;
  put(session.version, static_cast<uint16_t>(session.version + 1));
  // Release stores: none is visible before the version store above, nor after the one below: see
  // view().
  constexpr auto kOrder = std::memory_order_release;
  put(session.wire[kOut].ends, out.ends, kOrder);
  put(session.wire[kOut].rest, out.rest, kOrder);
  put(session.wire[kIn].ends, in.ends, kOrder);
  put(session.wire[kIn].rest, in.rest, kOrder);
  const bool is_counted = limits_.filtering == Filtering::kAddress;
  put(session.seen, static_cast<uint8_t>(seen | (is_counted ? kIsPeerCounted : 0)));
  session.mapping = mapping;
  session.growth_ip = static_cast<uint16_t>(fold32(growth32(out.src(), in.dst())));
  session.growth_l4 =
      static_cast<uint16_t>(fold32(session.growth_ip + growth16(out.src_port(), in.dst_port())));
  timers_.start(index, state, now);
  put(session.version, static_cast<uint16_t>(session.version + 1), kOrder);
  sessions_by_key_.insert(hash(out), 2 * index + kOut);
  sessions_by_key_.insert(hash(in), 2 * index + kIn);
  ++mappings_[mapping].n_sessions;
  ++hosts_[mappings_[mapping].host].n_sessions;
  if (is_counted) count_peer(mapping, in.src(), true);
  n_sessions_.add(1);
  n_opened_.add(1);
  return index;
}

void NaptTable::close(uint32_t index) noexcept {
  NaptSession& session = sessions_[index];
  const uint32_t mapping = session.mapping;
  const uint32_t remote = session.wire[kIn].src();
  sessions_by_key_.erase(hash(session.wire[kOut]), 2 * index + kOut);
  sessions_by_key_.erase(hash(session.wire[kIn]), 2 * index + kIn);
  timers_.stop(index);
  // A later packet of the same batch may already have this connection as its lookup result.
  put(session.wire[kOut].rest, kNoPacket);
  put(session.wire[kIn].rest, kNoPacket);
  session.timer_next = std::exchange(free_session_, index);
  if ((session.seen & kIsPeerCounted) != 0) count_peer(mapping, remote, false);
  --hosts_[mappings_[mapping].host].n_sessions;
  n_sessions_.add(~0ULL);
  if (--mappings_[mapping].n_sessions == 0) release_mapping(mapping);
}

void NaptTable::release_mapping(uint32_t mapping) noexcept {
  NaptMapping& gone = mappings_[mapping];
  mappings_by_end_.erase(mappings_by_end_.hash(gone.inside, kOut), 2 * mapping + kOut);
  mappings_by_end_.erase(mappings_by_end_.hash(gone.outside, kIn), 2 * mapping + kIn);
  (*pool_)[gone.external]
      .ports(port_space_of(proto_of(gone.outside)))
      .give_back(net::be16(port_of(gone.outside)));
  gone.next_free = std::exchange(free_mapping_, mapping);
  n_mappings_.add(~0ULL);
  if (--hosts_[gone.host].n_mappings == 0) release_host(gone.host);
}

void NaptTable::release_host(uint32_t host) noexcept {
  hosts_by_address_.erase(hosts_by_address_.hash(hosts_[host].address_raw, 0), host);
  hosts_[host].n_sessions = std::exchange(free_host_, host);
  n_hosts_.add(~0ULL);
}

}  // namespace batchplane::nat
