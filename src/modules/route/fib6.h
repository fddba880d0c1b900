// SPDX-License-Identifier: BSD-3-Clause
// fib6.h - longest-prefix match of IPv6 addresses, in bulk; one instance, no locking.
//
// With DPDK a wrapper around rte_fib6 (a trie with strides 24-8-8-..), without it one hash map per
// prefix length.
#pragma once

#include <cstdint>
#include <memory>

#include "base/net6.h"
#include "modules/route/fib.h"

namespace batchplane {

// Here FibConfig's max_tbl8 counts blocks of 256 entries; a prefix longer than 24 may need one for
// each 8 bits beyond, and shares blocks with prefixes that begin with the same bits.
//
// lookup(): any thread while nobody edits. Everything else: one thread at a time.
class Fib6 {
 public:
  // In network order.
  using Bytes = uint8_t[16];

  // Throws ConfigError with the memory needed if there is not enough.
  explicit Fib6(const FibConfig& config);
  ~Fib6();
  Fib6(const Fib6&) = delete;
  Fib6& operator=(const Fib6&) = delete;

  // Adds a prefix or changes its id (<= config.max_id()). Throws ConfigError when the table is
  // full; it is unchanged then.
  void set(const net::Prefix6& prefix, uint32_t id);
  // The addresses fall back to the covering prefix. False if the prefix was not there.
  bool erase(const net::Prefix6& prefix);

  // ids[i] = id of the longest prefix of addresses[i], or miss_id.
  void lookup(const Bytes* addresses, uint64_t* ids, uint32_t n) const noexcept;

  [[nodiscard]] const FibConfig& config() const { return config_; }
  // "avx512", "scalar" or "plain".
  [[nodiscard]] const char* lookup_path() const;
  // Memory of one instance; with DPDK it is EAL memory.
  [[nodiscard]] static uint64_t memory_bytes(const FibConfig& config);

 private:
  struct Impl;
  FibConfig config_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchplane
