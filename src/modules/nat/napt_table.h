// SPDX-License-Identifier: BSD-3-Clause
// napt_table.h - connections, the mappings they share, and the inside hosts.
//
// A mapping pairs an inside address and port with an external address and port (RFC 4787:
// endpoint-independent); it lives as long as a connection uses it. One index holds both keys of
// each connection: looking up a packet's five-tuple gives the connection and the direction. All
// memory is allocated at construction.
#pragma once

#include <functional>

#include "modules/nat/napt_index.h"
#include "modules/nat/napt_ports.h"
#include "modules/nat/napt_session.h"
#include "modules/nat/napt_timers.h"

namespace batchplane::nat {

enum class Filtering : uint8_t { kEndpoint, kAddress, kAddressAndPort };
enum class Refusal : uint8_t { kNone, kTable, kPorts, kHost, kFilter };

struct NaptLimits {
  uint32_t max_connections = 65536;
  uint32_t max_per_host = 0;  // 0: no limit
  bool may_evict = false;
  Filtering filtering = Filtering::kEndpoint;
};

struct NaptMapping {
  uint64_t inside = 0;   // address, port, protocol
  uint64_t outside = 0;  // external address, port, protocol
  uint32_t host = 0;
  uint32_t n_sessions = 0;
  uint32_t external = 0;  // index in the pool
  uint32_t next_free = 0;
};

struct NaptHost {
  uint32_t address_raw = 0;
  uint32_t external = 0;
  uint32_t n_mappings = 0;
  uint32_t n_sessions = 0;  // in the free list: next free host
};

// Number of connections of a mapping with one remote address, for address-dependent filtering.
struct NaptPeer {
  uint64_t key = 0;  // mapping, address
  uint32_t n_sessions = 0;
  uint32_t next_free = 0;
};

// A snapshot of a connection for the control thread. Network order.
struct NaptView {
  NaptKey out;
  NaptKey in;
  NaptState state = NaptState::kFree;
  uint32_t last_seen = 0;
};

// Owner: the worker; counts and view(): any thread.
class NaptTable {
 public:
  static constexpr uint32_t kMaxConnections = 4U << 20;

  NaptTable(const NaptLimits& limits, const NaptStateRules& rules,
            std::unique_ptr<ExternalPool> pool, uint64_t seed);

  // For bulk lookups. A result is 2 * connection + direction, or 0.
  [[nodiscard]] uint64_t hash(const NaptKey& key) const {
    return sessions_by_key_.hash(key.ends, key.rest);
  }
  [[nodiscard]] const NaptIndex& index() const { return sessions_by_key_; }
  [[nodiscard]] NaptSession* sessions() { return sessions_.data(); }

  // Returns 0 for an expired connection and closes it.
  [[nodiscard]] uint32_t find(const NaptKey& key, uint32_t now) noexcept;
  // The mapping of an external address, port and protocol; 0 if there is none.
  [[nodiscard]] uint32_t find_mapping(uint32_t address_raw, uint16_t port, uint8_t proto) noexcept;

  // Opens a connection for a packet from an inside host, or for one to an existing mapping. Returns
  // 0 and sets `why` if it cannot.
  uint32_t open_outbound(const NaptKey& key, NaptState state, uint8_t seen, uint32_t now,
                         Refusal& why) noexcept;
  uint32_t open_inbound(const NaptKey& key, uint32_t mapping, NaptState state, uint32_t now,
                        Refusal& why) noexcept;
  void close(uint32_t index) noexcept;
  // Closes the connections in the next `n` entries from `place` on; returns true at the end of the
  // table.
  bool flush(uint32_t& place, uint32_t n) noexcept;

  // Sets all limits except the size.
  void set_limits(const NaptLimits& limits) noexcept;
  [[nodiscard]] const NaptLimits& limits() const { return limits_; }
  [[nodiscard]] ExternalPool& pool() { return *pool_; }
  [[nodiscard]] const ExternalPool& pool() const { return *pool_; }
  [[nodiscard]] NaptTimers& timers() { return timers_; }
  [[nodiscard]] const NaptTimers& timers() const { return timers_; }

  // Any thread.
  [[nodiscard]] uint64_t n_sessions() const { return n_sessions_.value(); }
  [[nodiscard]] uint64_t n_mappings() const { return n_mappings_.value(); }
  [[nodiscard]] uint64_t n_hosts() const { return n_hosts_.value(); }
  [[nodiscard]] uint64_t n_opened() const { return n_opened_.value(); }
  [[nodiscard]] uint64_t n_evicted() const { return n_evicted_.value(); }
  [[nodiscard]] size_t size_bytes() const;
  [[nodiscard]] uint32_t capacity() const { return capacity_; }
  // Returns false if entry `index` is free or keeps changing during the read.
  [[nodiscard]] bool view(uint32_t index, NaptView& view) const;

 private:
  uint32_t free_session(Refusal& why) noexcept;
  bool evict_oldest() noexcept;
  uint32_t obtain_host(uint32_t address_raw, PortSpace space, Refusal& why) noexcept;
  uint32_t obtain_mapping(const NaptKey& key, uint32_t host, Refusal& why) noexcept;
  uint32_t take_port(uint32_t host, PortSpace space, uint32_t wanted) noexcept;
  uint32_t start(const NaptKey& out, const NaptKey& in, uint32_t mapping, NaptState state,
                 uint8_t seen, uint32_t now) noexcept;
  void release_mapping(uint32_t mapping) noexcept;
  void release_host(uint32_t host) noexcept;
  [[nodiscard]] bool is_over_limit(uint32_t host, Refusal& why) const noexcept;
  [[nodiscard]] uint32_t find_peer(uint64_t key) const noexcept;
  void count_peer(uint32_t mapping, uint32_t remote, bool is_more) noexcept;
  [[nodiscard]] bool admits(uint32_t mapping, uint32_t remote) const noexcept;

  NaptLimits limits_;
  const uint32_t capacity_;
  std::unique_ptr<ExternalPool> pool_;
  BigArray<NaptSession> sessions_;  // index 0 is unused as a connection
  BigArray<NaptMapping> mappings_;
  BigArray<NaptHost> hosts_;
  BigArray<NaptPeer> peers_;
  NaptIndex sessions_by_key_;
  NaptIndex mappings_by_end_;  // 2 * mapping, + 1 for its external end
  NaptIndex hosts_by_address_;
  NaptIndex peers_by_key_;
  uint32_t free_session_ = 0;
  uint32_t free_mapping_ = 0;
  uint32_t free_host_ = 0;
  uint32_t free_peer_ = 0;
  Rng rng_;
  NaptTimers timers_;
  Tally n_sessions_, n_mappings_, n_hosts_, n_opened_, n_evicted_;
};

}  // namespace batchplane::nat
