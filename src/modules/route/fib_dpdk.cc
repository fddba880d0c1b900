// SPDX-License-Identifier: BSD-3-Clause
// fib_dpdk.cc - longest-prefix match with rte_fib, using AVX-512 where CPU and EAL allow it.
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_memory.h>
#include <rte_rib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>

#include "base/error.h"
#include "core/packet/eal_state_dpdk.h"
#include "modules/route/fib.h"
#include "modules/route/prefix_map.h"

namespace batchplane {
namespace {

constexpr uint64_t kTbl24Entries = 1ULL << 24;
constexpr uint64_t kTbl8Entries = 256;
// A RIB node in its mempool: 40 bytes rounded up to a cache line, a header of one line, and its
// share of the pool's ring. rte_fib allocates two nodes per prefix.
constexpr uint64_t kRibNodeBytes = 64 + 64 + 8 + 8;
constexpr uint64_t kNodesPerPrefix = 2;

}  // namespace

struct Fib::Impl {
  rte_fib* fib = nullptr;  // null if EAL was not started, then:
  PrefixMap<net::Prefix4> plain;
  bool is_avx512 = false;
  ~Impl() { rte_fib_free(fib); }
};

uint32_t FibConfig::default_tbl8() const {
  return std::min(std::max(max_prefixes / 4, 256U), max_id());
}

uint64_t Fib::memory_bytes(const FibConfig& config) {
  return (kTbl24Entries + config.tbl8() * kTbl8Entries) * config.next_hop_bytes +
         uint64_t{config.max_prefixes} * kNodesPerPrefix * kRibNodeBytes + (1 << 20);
}

Fib::Fib(const FibConfig& config) : config_(config), impl_(std::make_unique<Impl>()) {
  if (!has_eal()) return;
  static std::atomic<uint32_t> serial{0};
  const std::string name = "fib_" + std::to_string(serial.fetch_add(1));
  rte_fib_conf conf{};
  conf.type = RTE_FIB_DIR24_8;
  conf.default_nh = config.miss_id;
  conf.max_routes = static_cast<int>(config.max_prefixes);
  conf.dir24_8.nh_sz = config.next_hop_bytes == 2 ? RTE_FIB_DIR24_8_2B : RTE_FIB_DIR24_8_4B;
  conf.dir24_8.num_tbl8 = std::min(config.tbl8(), config.max_id());
  impl_->fib = rte_fib_create(name.c_str(), SOCKET_ID_ANY, &conf);
  if (impl_->fib == nullptr) {
    throw ConfigError("no memory for a table of " + std::to_string(config.max_prefixes) +
                          " prefixes: it needs " + megabytes(memory_bytes(config)) + " MB twice (" +
                          rte_strerror(rte_errno) + ")",
                      "", "give the daemon more memory, or lower max_prefixes");
  }
  impl_->is_avx512 = rte_fib_select_lookup(impl_->fib, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512) == 0;
  if (!impl_->is_avx512) rte_fib_select_lookup(impl_->fib, RTE_FIB_LOOKUP_DEFAULT);
}

Fib::~Fib() = default;

void Fib::set(net::Prefix4 prefix, uint32_t id) {
  if (impl_->fib == nullptr) return impl_->plain.set(config_, prefix, id);
  // rte_fib (22.11) does not count the tbl8 of a new prefix whose ID equals that of the covering
  // prefix, but subtracts it on deletion: the count wraps and the table is "full". Adding it first
  // with an ID that no covering prefix has gets it counted.
  int error = 0;
  if (prefix.length > 24 &&
      rte_rib_lookup_exact(rte_fib_get_rib(impl_->fib), prefix.address, prefix.length) == nullptr) {
    error = rte_fib_add(impl_->fib, prefix.address, prefix.length, config_.miss_id);
  }
  if (error == 0) error = rte_fib_add(impl_->fib, prefix.address, prefix.length, id);
  if (error == 0) return;
  const std::string where = net::format_prefix4(prefix);
  if (error == -ENOSPC && prefix.length > 24) {
    throw ConfigError("no room for " + where + ": " + std::to_string(config_.tbl8()) +
                          " blocks of /24 with longer prefixes are taken",
                      "", "raise max_long_blocks");
  }
  throw ConfigError("no room for " + where + ": the table holds " +
                        std::to_string(config_.max_prefixes) + " prefixes at most",
                    "", "raise max_prefixes");
}

bool Fib::erase(net::Prefix4 prefix) {
  if (impl_->fib == nullptr) return impl_->plain.erase(prefix);
  return rte_fib_delete(impl_->fib, prefix.address, prefix.length) == 0;
}

void Fib::lookup(const uint32_t* addresses, uint64_t* ids, uint32_t n) const noexcept {
  if (impl_->fib == nullptr) [[unlikely]] {
    for (uint32_t i = 0; i < n; ++i) ids[i] = impl_->plain.find(addresses[i], config_.miss_id);
    return;
  }
  rte_fib_lookup_bulk(impl_->fib, const_cast<uint32_t*>(addresses), ids, static_cast<int>(n));
}

const char* Fib::lookup_path() const {
  if (impl_->fib == nullptr) return "plain";
  return impl_->is_avx512 ? "avx512" : "scalar";
}

}  // namespace batchplane
