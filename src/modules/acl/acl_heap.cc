// SPDX-License-Identifier: BSD-3-Clause
// acl_heap.cc - access lists in builds without DPDK: slow and simple.
#include "modules/acl/acl_classifier.h"
#include "modules/acl/acl_linear.h"

namespace batchplane {

struct AclClassifier::Impl {
  AclLinear rules;
};

AclClassifier::AclClassifier(AclFamily headers, bool reads_ports,
                             const std::vector<AclEntry>& entries)
    : impl_(std::make_unique<Impl>(Impl{AclLinear(headers, reads_ports, entries)})) {}

AclClassifier::~AclClassifier() = default;

void AclClassifier::classify(const uint8_t* const* headers, uint32_t* ids,
                             uint32_t n) const noexcept {
  impl_->rules.classify(headers, ids, n);
}

const char* AclClassifier::lookup_path() const { return "linear"; }

uint64_t AclClassifier::memory_bytes(uint32_t n_rules) { return n_rules * sizeof(AclMatch); }

}  // namespace batchplane
