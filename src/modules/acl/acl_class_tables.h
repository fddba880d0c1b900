// SPDX-License-Identifier: BSD-3-Clause
// acl_class_tables.h - IPv4 classification by equivalence classes, for lists of moderate length.
//
// Values of 16 header bits that match the same rules form a class. One table per 16 bits gives the
// class, tables over pairs of classes give classes of the combination, and the last one gives the
// rule ("recursive flow classification", Gupta and McKeown). A packet takes 9 to 15 loads, most of
// them independent: a fraction of the cost of a trie walk, at any batch size. The tables grow with
// the product of the class counts, so long lists are left to AclClassifier.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "modules/acl/acl_classifier.h"

namespace batchplane {

// Immutable. classify(): any thread.
class AclClassTables {
 public:
  // Parameters as for AclClassifier. Returns null if the tables are too large.
  static std::unique_ptr<AclClassTables> make(bool reads_ports,
                                              const std::vector<AclEntry>& entries);

  void classify(const uint8_t* const* headers, uint32_t* ids, uint32_t n) const noexcept;

  [[nodiscard]] uint64_t size_bytes() const { return cells_.size() * sizeof(uint16_t); }

 private:
  friend class AclClassBuilder;
  // A table over a pair of classes: cell a * width + b.
  struct Pair {
    uint32_t at = 0;
    uint32_t width = 1;
  };
  enum Chunk : uint32_t {
    kSrcHigh,
    kSrcLow,
    kDstHigh,
    kDstLow,
    kProto,
    kDstPort,
    kSrcPort,
    kFlags
  };
  static constexpr uint32_t kChunks = 8;

  template <bool kReadsPorts, bool kReadsFlags>
  void classify_as(const uint8_t* const* headers, uint32_t* ids, uint32_t n) const noexcept;

  bool reads_ports_ = false;
  bool reads_flags_ = false;
  uint32_t chunk_at_[kChunks] = {};
  Pair src_, dst_, addresses_;
  Pair proto_and_flags_, with_dst_port_, transport_;
  Pair last_;
  std::vector<uint16_t> cells_;  // all tables in one array, to use few TLB entries
};

}  // namespace batchplane
