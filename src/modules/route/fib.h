// SPDX-License-Identifier: BSD-3-Clause
// fib.h - longest-prefix match of IPv4 addresses, in bulk; one instance, no locking.
//
// With DPDK a thin wrapper around rte_fib (DIR-24-8), without it one hash map per prefix length.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/net.h"

namespace batchplane {

// Rounded up, for messages.
inline std::string megabytes(uint64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20);
}

struct FibConfig {
  uint32_t max_prefixes = 16384;
  uint32_t max_tbl8 = 0;        // /24 blocks with prefixes longer than 24; 0 = default_tbl8()
  uint32_t next_hop_bytes = 2;  // 2 or 4
  uint32_t miss_id = 0x7fff;    // the ID of addresses without a route

  // Largest ID (and largest number of tbl8): one bit of an entry marks it as extended.
  [[nodiscard]] uint32_t max_id() const { return next_hop_bytes == 2 ? 0x7fff : 0x7fffffff; }
  // A quarter of the prefixes: public routing tables have almost none longer than 24.
  [[nodiscard]] uint32_t default_tbl8() const;
  [[nodiscard]] uint32_t tbl8() const { return max_tbl8 != 0 ? max_tbl8 : default_tbl8(); }
};

// lookup(): any thread while nobody edits. Everything else: one thread at a time.
class Fib {
 public:
  // Throws ConfigError with the memory needed if there is not enough.
  explicit Fib(const FibConfig& config);
  ~Fib();
  Fib(const Fib&) = delete;
  Fib& operator=(const Fib&) = delete;

  // Adds a prefix or changes its id (<= config.max_id()). Throws ConfigError when the table is
  // full; it is unchanged then. Prefixes shorter than 16 write up to 2^24 entries: tens of
  // milliseconds.
  void set(net::Prefix4 prefix, uint32_t id);
  // The addresses fall back to the covering prefix. False if the prefix was not there.
  bool erase(net::Prefix4 prefix);

  // ids[i] = id of the longest prefix of addresses[i] (host order), or miss_id.
  void lookup(const uint32_t* addresses, uint64_t* ids, uint32_t n) const noexcept;

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
