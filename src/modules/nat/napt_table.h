// SPDX-License-Identifier: BSD-3-Clause
// napt_table.h - connections, the mappings that they share, and the inside hosts these belong to.
//
// A mapping is an inside address and port and the external ones it has (RFC 4787: independent of
// the remote end); it lives as long as a connection uses it. One index has both keys of each
// connection: a packet is found by its own five-tuple, and its direction with it. All memory is
// taken at construction.
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
  uint32_t max_per_host = 0;  // 0: as many as there are
  bool may_evict = false;
  Filtering filtering = Filtering::kEndpoint;
};

struct NaptMapping {
  uint64_t inside = 0;   // address, port, protocol
  uint64_t outside = 0;  // the same of the external end
  uint32_t host = 0;
  uint32_t n_sessions = 0;
  uint32_t external = 0;  // index in the pool
  uint32_t next_free = 0;
};

struct NaptHost {
  uint32_t address_raw = 0;
  uint32_t external = 0;
  uint32_t n_mappings = 0;
  uint32_t n_sessions = 0;  // also: next free one
};

// How many connections a mapping has with one remote address; kept for address-dependent filtering.
struct NaptPeer {
  uint64_t key = 0;  // mapping, address
  uint32_t n_sessions = 0;
  uint32_t next_free = 0;
};

// A connection as the control thread sees it. Host order.
struct NaptView {
  NaptKey out;
  NaptKey in;
  NaptState state = NaptState::kFree;
  uint32_t last_seen = 0;
};

// Owner: the worker; counts and view() are for any thread.
class NaptTable {
 public:
  static constexpr uint32_t kMaxConnections = 4U << 20;

  NaptTable(const NaptLimits& limits, const NaptStateRules& rules,
            std::unique_ptr<ExternalPool> pool, uint64_t seed);

  // What lookups in bulk are made of. A result is 2 * connection + direction, or 0.
  [[nodiscard]] uint64_t hash(const NaptKey& key) const {
    return sessions_by_key_.hash(key.ends, key.rest);
  }
  [[nodiscard]] const NaptIndex& index() const { return sessions_by_key_; }
  [[nodiscard]] NaptSession* sessions() { return sessions_.data(); }

  // An expired connection is not found; it is gone then.
  [[nodiscard]] uint32_t find(const NaptKey& key, uint32_t now) noexcept;
  // The mapping behind an external address, port and protocol; 0 when there is none.
  [[nodiscard]] uint32_t find_mapping(uint32_t address_raw, uint16_t port, uint8_t proto) noexcept;

  // Opens a connection for a packet that an inside host sent, or that came for a mapping. 0: `why`
  // says why not.
  uint32_t open_outbound(const NaptKey& key, NaptState state, uint8_t seen, uint32_t now,
                         Refusal& why) noexcept;
  uint32_t open_inbound(const NaptKey& key, uint32_t mapping, NaptState state, uint32_t now,
                        Refusal& why) noexcept;
  void close(uint32_t index) noexcept;
  // Closes every connection among the next `n` places; true when the end was reached.
  bool flush(uint32_t& place, uint32_t n) noexcept;

  // All but the size.
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
  // False when place `index` is free, or changes all the time.
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
  BigArray<NaptSession> sessions_;  // from 1 on
  BigArray<NaptMapping> mappings_;
  BigArray<NaptHost> hosts_;
  BigArray<NaptPeer> peers_;
  NaptIndex sessions_by_key_;
  NaptIndex mappings_by_end_;  // 2 * mapping, + 1 for the external end
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
