// SPDX-License-Identifier: BSD-3-Clause
// acl_linear.h - access rules as a list that is walked for each packet: where DPDK is not, or its
// environment was not started.
#pragma once

#include <utility>
#include <vector>

#include "modules/acl/acl_classifier.h"

namespace batchplane {

// As AclClassifier, which this stands behind.
class AclLinear {
 public:
  AclLinear(AclFamily headers, bool reads_ports, const std::vector<AclEntry>& entries);

  void classify(const uint8_t* const* headers, uint32_t* ids, uint32_t n) const noexcept;

 private:
  AclFamily headers_;
  bool reads_ports_;
  std::vector<std::pair<AclMatch, uint32_t>> rules_;
};

}  // namespace batchplane
