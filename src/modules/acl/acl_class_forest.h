// SPDX-License-Identifier: BSD-3-Clause
// acl_class_forest.h - class tables for long IPv4 lists: one set of tables per destination range.
//
// Ranges are halved until each is reached by few enough rules. A rule with a wide prefix is in the
// tables of every range it overlaps, so a packet is looked up in only one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "modules/acl/acl_class_tables.h"

namespace batchplane {

// Immutable. classify(): any thread.
class AclClassForest {
 public:
  // Parameters as for AclClassifier. Returns null if there are too many ranges or the tables are
  // too large.
  static std::unique_ptr<AclClassForest> make(bool reads_ports,
                                              const std::vector<AclEntry>& entries);

  void classify(const uint8_t* const* headers, uint32_t* ids, uint32_t n) const noexcept;

 private:
  bool cut(bool reads_ports, uint32_t first, uint32_t last, const std::vector<AclEntry>& entries);

  uint64_t n_bytes_ = 0;
  std::vector<uint8_t> range_of_;  // indexed by the upper half of the destination
  std::vector<std::unique_ptr<AclClassTables>> ranges_;
};

}  // namespace batchplane
