// SPDX-License-Identifier: BSD-3-Clause
// fib6_heap.cc - longest-prefix match of IPv6 addresses for builds without DPDK.
#include "modules/route/fib6.h"
#include "modules/route/prefix_map.h"

namespace batchplane {

struct Fib6::Impl {
  PrefixMap<net::Prefix6> prefixes;
};

uint64_t Fib6::memory_bytes(const FibConfig& config) {
  return PrefixMap<net::Prefix6>::memory_bytes(config.max_prefixes);
}

Fib6::Fib6(const FibConfig& config) : config_(config), impl_(std::make_unique<Impl>()) {}

Fib6::~Fib6() = default;

void Fib6::set(const net::Prefix6& prefix, uint32_t id) {
  impl_->prefixes.set(config_, prefix, id);
}

bool Fib6::erase(const net::Prefix6& prefix) { return impl_->prefixes.erase(prefix); }

void Fib6::lookup(const Bytes* addresses, uint64_t* ids, uint32_t n) const noexcept {
  for (uint32_t i = 0; i < n; ++i) {
    ids[i] = impl_->prefixes.find(net::load_address6(addresses[i]), config_.miss_id);
  }
}

const char* Fib6::lookup_path() const { return "plain"; }

}  // namespace batchplane
