// SPDX-License-Identifier: BSD-3-Clause
// acl_linear.h - linear search through the rules for each packet, if DPDK is missing or EAL was not
// started.
#pragma once

#include <utility>
#include <vector>

#include "modules/acl/acl_classifier.h"

namespace batchplane {

// The interface of AclClassifier, whose fallback it is.
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
