// SPDX-License-Identifier: BSD-3-Clause
// napt_peers.cc - the rest of the connection table: filtering of remote hosts, and views for other
// threads.
#include <utility>

#include "modules/nat/napt_table.h"

namespace batchplane::nat {

uint32_t NaptTable::find_peer(uint64_t key) const noexcept {
  return peers_by_key_.find(peers_by_key_.hash(key, 0),
                            [&](uint32_t n) { return peers_[n].key == key; });
}

void NaptTable::count_peer(uint32_t mapping, uint32_t remote, bool is_more) noexcept {
  const uint64_t key = uint64_t{mapping} << 32 | remote;
  uint32_t peer = find_peer(key);
  if (!is_more) {
    if (--peers_[peer].n_sessions != 0) return;
    peers_by_key_.erase(peers_by_key_.hash(key, 0), peer);
    peers_[peer].next_free = std::exchange(free_peer_, peer);
    return;
  }
  if (peer == 0) {
    peer = free_peer_;
    free_peer_ = peers_[peer].next_free;
    peers_[peer] = {.key = key};
    peers_by_key_.insert(peers_by_key_.hash(key, 0), peer);
  }
  ++peers_[peer].n_sessions;
}

// RFC 4787, 5. Only called for packets that do not belong to an existing connection.
bool NaptTable::admits(uint32_t mapping, uint32_t remote) const noexcept {
  if (limits_.filtering == Filtering::kAddressAndPort) return false;
  return limits_.filtering == Filtering::kEndpoint ||
         find_peer(uint64_t{mapping} << 32 | remote) != 0;
}

void NaptTable::set_limits(const NaptLimits& limits) noexcept {
  limits_ = limits;
  limits_.max_connections = capacity_;
}

bool NaptTable::flush(uint32_t& place, uint32_t n) noexcept {
  for (; n != 0 && place <= capacity_; --n, ++place) {
    if (place != 0 && sessions_[place].state != NaptState::kFree) close(place);
  }
  return place > capacity_;
}

size_t NaptTable::size_bytes() const {
  return sessions_.size_bytes() + mappings_.size_bytes() + hosts_.size_bytes() +
         peers_.size_bytes() + sessions_by_key_.size_bytes() + mappings_by_end_.size_bytes() +
         hosts_by_address_.size_bytes() + peers_by_key_.size_bytes();
}

bool NaptTable::view(uint32_t index, NaptView& view) const {
  constexpr int kTries = 8;
  const NaptSession& session = sessions_[index];
  for (int i = 0; i < kTries; ++i) {
    const uint16_t before = peek(session.version);
    view = {{peek(session.wire[kOut].ends), peek(session.wire[kOut].rest)},
            {peek(session.wire[kIn].ends), peek(session.wire[kIn].rest)},
            peek(session.state),
            peek(session.last_seen)};
    if (peek(session.version) != before || (before & 1) != 0) continue;
    return view.state != NaptState::kFree && view.out.rest != kNoPacket &&
           view.in.rest != kNoPacket;
  }
  return false;
}

}  // namespace batchplane::nat
