// SPDX-License-Identifier: BSD-3-Clause
// acl_classifier.h - finds the first rule that matches an IP header, in bulk.
//
// With DPDK a thin wrapper around rte_acl, without it a linear search. No locking.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "modules/acl/acl_rule.h"

namespace batchplane {

// A rule of a classifier; earlier entries take precedence.
struct AclEntry {
  const AclMatch* match = nullptr;
  uint32_t id = 0;  // result of a match; not 0
};

// Headers are read in place: no options or extension headers, and the transport header follows
// directly. The number of its bytes that must be present if rules match ports, and if some match
// flags:
inline constexpr uint32_t kAclPortsBytes = 4;
inline constexpr uint32_t kAclFlagsBytes = 16;

// Owner: control thread, except classify(): any thread.
class AclClassifier {
 public:
  // `headers`: the address family of the packets. If `reads_ports` is false, only addresses and
  // protocol are read, and entries must not match more. Throws ConfigError if memory runs out.
  AclClassifier(AclFamily headers, bool reads_ports, const std::vector<AclEntry>& entries);
  ~AclClassifier();
  AclClassifier(const AclClassifier&) = delete;
  AclClassifier& operator=(const AclClassifier&) = delete;

  // ids[i] = id of the first entry that matches headers[i], or 0.
  void classify(const uint8_t* const* headers, uint32_t* ids, uint32_t n) const noexcept;

  // "avx512x32", "avx2", .. or "linear".
  [[nodiscard]] const char* lookup_path() const;
  // Upper estimate of the EAL memory that a classifier with this number of rules needs while it is
  // built and used.
  [[nodiscard]] static uint64_t memory_bytes(uint32_t n_rules);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchplane
