// SPDX-License-Identifier: BSD-3-Clause
// fib6_dpdk.cc - longest-prefix match with rte_fib6, using AVX-512 where CPU and EAL allow it.
#include <rte_errno.h>
#include <rte_fib6.h>
#include <rte_memory.h>
#include <rte_rib6.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>

#include "base/error.h"
#include "core/packet/eal_state_dpdk.h"
#include "modules/route/fib6.h"
#include "modules/route/prefix_map.h"

namespace batchplane {
namespace {

constexpr uint64_t kRootEntries = 1ULL << 24;
constexpr uint64_t kBlockEntries = 256;
// A RIB node in its mempool: 64 bytes, a header of one cache line, and its share of the pool's
// ring.
constexpr uint64_t kRib6NodeBytes = 64 + 64 + 8 + 8;
constexpr uint64_t kNodesPerPrefix6 = 2;

struct FreeFib {
  void operator()(rte_fib6* fib) const { rte_fib6_free(fib); }
};
using FibPointer = std::unique_ptr<rte_fib6, FreeFib>;

uint32_t default_blocks6(const FibConfig& config) {
  // Three levels of longer prefixes, which is more than tables of /32 to /48 need, as they share
  // blocks.
  const uint64_t usual = std::max<uint64_t>(uint64_t{config.max_prefixes} * 3, 4096);
  const uint64_t wanted = config.max_tbl8 != 0 ? config.max_tbl8 : usual;
  return static_cast<uint32_t>(std::min<uint64_t>(wanted, config.max_id()));
}

FibPointer make_fib(const FibConfig& config) {
  static std::atomic<uint32_t> serial{0};
  const std::string name = "fib6_" + std::to_string(serial.fetch_add(1));
  rte_fib6_conf conf{};
  conf.type = RTE_FIB6_TRIE;
  conf.default_nh = config.miss_id;
  conf.max_routes = static_cast<int>(config.max_prefixes);
  conf.trie.nh_sz = config.next_hop_bytes == 2 ? RTE_FIB6_TRIE_2B : RTE_FIB6_TRIE_4B;
  conf.trie.num_tbl8 = default_blocks6(config);
  return FibPointer(rte_fib6_create(name.c_str(), SOCKET_ID_ANY, &conf));
}

struct Key {
  explicit Key(const net::Prefix6& prefix) : length(prefix.length) {
    net::store_address6(bytes, prefix.address);
  }
  uint8_t bytes[16];
  uint8_t length;
};

bool has(rte_fib6* fib, const Key& key, uint64_t id) {
  uint64_t found = 0;
  const rte_rib6_node* node = rte_rib6_lookup_exact(rte_fib6_get_rib(fib), key.bytes, key.length);
  return node != nullptr && rte_rib6_get_nh(node, &found) == 0 && found == id;
}

// rte_fib6 (22.11) does not count the blocks of a new prefix whose ID equals that of the covering
// prefix, but subtracts them on deletion. Adding it first with an ID that no covering prefix has
// gets them counted. It also reports no error if the ID of a known prefix cannot be changed.
int add_to(rte_fib6* fib, const Key& key, uint64_t id, uint64_t miss_id) {
  int error = 0;
  if (key.length > 24 &&
      rte_rib6_lookup_exact(rte_fib6_get_rib(fib), key.bytes, key.length) == nullptr) {
    error = rte_fib6_add(fib, key.bytes, key.length, miss_id);
  }
  if (error == 0) error = rte_fib6_add(fib, key.bytes, key.length, id);
  return error == 0 && !has(fib, key, id) ? -ENOSPC : error;
}

}  // namespace

struct Fib6::Impl {
  FibPointer fib;  // null if EAL was not started, then:
  PrefixMap<net::Prefix6> plain;
  bool is_avx512 = false;

  void take(FibPointer next) {
    fib = std::move(next);
    is_avx512 = rte_fib6_select_lookup(fib.get(), RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512) == 0;
    if (!is_avx512) rte_fib6_select_lookup(fib.get(), RTE_FIB6_LOOKUP_DEFAULT);
  }

  // A new table with the same prefixes, and `more`. rte_fib6 reserves blocks by the state it finds
  // when a prefix is added and releases by the state it finds when it is deleted, so that after
  // many edits it seems full; and an edit that fails half-way leaves entries behind. Null if it
  // does not fit.
  FibPointer rebuilt(const FibConfig& config, const Key* more, uint64_t id) const {
    FibPointer next = make_fib(config);
    if (next == nullptr) return nullptr;
    rte_rib6* rib = rte_fib6_get_rib(fib.get());
    const uint8_t zero[16] = {};
    rte_rib6_node* node = nullptr;
    while ((node = rte_rib6_get_nxt(rib, zero, 0, node, RTE_RIB6_GET_NXT_ALL)) != nullptr) {
      Key key(net::Prefix6{});
      uint64_t known = 0;
      rte_rib6_get_ip(node, key.bytes);
      rte_rib6_get_depth(node, &key.length);
      rte_rib6_get_nh(node, &known);
      if (add_to(next.get(), key, known, config.miss_id) != 0) return nullptr;
    }
    if (more != nullptr && add_to(next.get(), *more, id, config.miss_id) != 0) return nullptr;
    return next;
  }
};

uint64_t Fib6::memory_bytes(const FibConfig& config) {
  return (kRootEntries + default_blocks6(config) * kBlockEntries) * config.next_hop_bytes +
         uint64_t{config.max_prefixes} * kNodesPerPrefix6 * kRib6NodeBytes + (1 << 20);
}

Fib6::Fib6(const FibConfig& config) : config_(config), impl_(std::make_unique<Impl>()) {
  if (!has_eal()) return;
  FibPointer fib = make_fib(config);
  if (fib == nullptr) {
    throw ConfigError("no memory for a table of " + std::to_string(config.max_prefixes) +
                          " IPv6 prefixes: it needs " + megabytes(memory_bytes(config)) +
                          " MB twice (" + rte_strerror(rte_errno) + ")",
                      "", "give the daemon more memory, or lower max_prefixes or max_long_blocks");
  }
  impl_->take(std::move(fib));
}

Fib6::~Fib6() = default;

void Fib6::set(const net::Prefix6& prefix, uint32_t id) {
  if (impl_->fib == nullptr) return impl_->plain.set(config_, prefix, id);
  const Key key(prefix);
  const int error = add_to(impl_->fib.get(), key, id, config_.miss_id);
  if (error == 0) return;
  if (error == -ENOSPC) {
    if (FibPointer next = impl_->rebuilt(config_, &key, id)) return impl_->take(std::move(next));
    // Removes the entries of the failed edit; if there is no memory for that, at least the RIB is
    // right.
    if (FibPointer next = impl_->rebuilt(config_, nullptr, 0)) impl_->take(std::move(next));
  }
  const std::string where = net::format_prefix6(prefix);
  if (error == -ENOSPC && prefix.length > 24) {
    throw ConfigError("no room for " + where + ": " + std::to_string(default_blocks6(config_)) +
                          " blocks for prefixes longer than 24 are taken",
                      "", "raise max_long_blocks");
  }
  throw ConfigError("no room for " + where + ": the table holds " +
                        std::to_string(config_.max_prefixes) + " prefixes at most",
                    "", "raise max_prefixes");
}

bool Fib6::erase(const net::Prefix6& prefix) {
  if (impl_->fib == nullptr) return impl_->plain.erase(prefix);
  const Key key(prefix);
  return rte_fib6_delete(impl_->fib.get(), key.bytes, key.length) == 0;
}

void Fib6::lookup(const Bytes* addresses, uint64_t* ids, uint32_t n) const noexcept {
  if (impl_->fib == nullptr) [[unlikely]] {
    for (uint32_t i = 0; i < n; ++i) {
      ids[i] = impl_->plain.find(net::load_address6(addresses[i]), config_.miss_id);
    }
    return;
  }
  rte_fib6_lookup_bulk(impl_->fib.get(), const_cast<Bytes*>(addresses), ids, static_cast<int>(n));
}

const char* Fib6::lookup_path() const {
  if (impl_->fib == nullptr) return "plain";
  return impl_->is_avx512 ? "avx512" : "scalar";
}

}  // namespace batchplane
