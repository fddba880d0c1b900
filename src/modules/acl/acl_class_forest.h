// SPDX-License-Identifier: BSD-3-Clause
// acl_class_forest.h - tables of classes for long IPv4 lists: one set of tables for each range of
// destinations.
//
// The ranges are cut until few enough rules reach into each. Rules for wide prefixes are in the
// tables of every range that they reach into, so that a packet looks into one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "modules/acl/acl_class_tables.h"

namespace batchplane {

// Immutable. classify(): any thread.
class AclClassForest {
 public:
  // As AclClassifier's; null when the ranges would be too many or the tables too large.
  static std::unique_ptr<AclClassForest> make(bool reads_ports,
                                              const std::vector<AclEntry>& entries);

  void classify(const uint8_t* const* headers, uint32_t* ids, uint32_t n) const noexcept;

 private:
  bool cut(bool reads_ports, uint32_t first, uint32_t last, const std::vector<AclEntry>& entries);

  uint64_t n_bytes_ = 0;
  std::vector<uint8_t> range_of_;  // by the upper half of the destination
  std::vector<std::unique_ptr<AclClassTables>> ranges_;
};

}  // namespace batchplane
