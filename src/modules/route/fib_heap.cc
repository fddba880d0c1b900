// SPDX-License-Identifier: BSD-3-Clause
// fib_heap.cc - longest-prefix match for builds without DPDK.
#include <algorithm>

#include "modules/route/fib.h"
#include "modules/route/prefix_map.h"

namespace batchplane {

struct Fib::Impl {
  PrefixMap<net::Prefix4> prefixes;
};

uint32_t FibConfig::default_tbl8() const {
  return std::min(std::max(max_prefixes / 4, 256U), max_id());
}

uint64_t Fib::memory_bytes(const FibConfig& config) {
  return PrefixMap<net::Prefix4>::memory_bytes(config.max_prefixes);
}

Fib::Fib(const FibConfig& config) : config_(config), impl_(std::make_unique<Impl>()) {}

Fib::~Fib() = default;

void Fib::set(net::Prefix4 prefix, uint32_t id) { impl_->prefixes.set(config_, prefix, id); }

bool Fib::erase(net::Prefix4 prefix) { return impl_->prefixes.erase(prefix); }

void Fib::lookup(const uint32_t* addresses, uint64_t* ids, uint32_t n) const noexcept {
  for (uint32_t i = 0; i < n; ++i) ids[i] = impl_->prefixes.find(addresses[i], config_.miss_id);
}

const char* Fib::lookup_path() const { return "plain"; }

}  // namespace batchplane
