// SPDX-License-Identifier: BSD-3-Clause
// acl_classifier.h - finds the first rule that matches an IP header, in bulk; one instance, no
// locking.
//
// With DPDK a thin wrapper around rte_acl, without it a linear search.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "modules/acl/acl_rule.h"

namespace batchplane {

// A rule for a classifier; earlier entries take precedence.
struct AclEntry {
  const AclMatch* match = nullptr;
  uint32_t id = 0;  // what a match gives; not 0
};

// Headers are read where they lie: without options or extension headers, the transport header right
// behind. So much of it has to be there where rules ask for ports, and where some ask for flags:
inline constexpr uint32_t kAclPortsBytes = 4;
inline constexpr uint32_t kAclFlagsBytes = 16;

// classify(): any thread. Everything else: the control thread.
class AclClassifier {
 public:
  // `headers`: the family of the packets. If `reads_ports` is false, only addresses and protocol
  // are read, and entries must not need more. Throws ConfigError if there is not enough memory.
  AclClassifier(AclFamily headers, bool reads_ports, const std::vector<AclEntry>& entries);
  ~AclClassifier();
  AclClassifier(const AclClassifier&) = delete;
  AclClassifier& operator=(const AclClassifier&) = delete;

  // ids[i] = id of the first entry that matches headers[i], or 0.
  void classify(const uint8_t* const* headers, uint32_t* ids, uint32_t n) const noexcept;

  // "avx512x32", "avx2", .. or "linear".
  [[nodiscard]] const char* lookup_path() const;
  // EAL memory that a classifier of that many rules takes while it is built and used, an upper
  // estimate.
  [[nodiscard]] static uint64_t memory_bytes(uint32_t n_rules);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchplane
