// SPDX-License-Identifier: BSD-3-Clause
// acl_class_forest.cc - halves the destination space recursively until each part has few enough
// rules.
#include "modules/acl/acl_class_forest.h"

#include <algorithm>

#include "base/net_headers.h"

namespace batchplane {
namespace {

constexpr uint32_t kHalf = 1 << 16;
constexpr uint32_t kMaxRanges = 64;
constexpr size_t kEasyRules = 1200;
constexpr uint64_t kMaxBytes = 64 << 20;

bool reaches(const AclMatch& match, uint32_t first, uint32_t last) {
  const uint32_t address = net::load32(match.dst.bytes.data());
  return address >> 16 <= last && (address | ~net::mask4(match.dst.length)) >> 16 >= first;
}

}  // namespace

bool AclClassForest::cut(bool reads_ports, uint32_t first, uint32_t last,
                         const std::vector<AclEntry>& entries) {
  std::vector<AclEntry> inside;
  std::ranges::copy_if(entries, std::back_inserter(inside),
                       [&](const AclEntry& entry) { return reaches(*entry.match, first, last); });
  if (inside.size() > kEasyRules) {
    if (first == last) return false;
    const uint32_t middle = (first + last) / 2;
    return cut(reads_ports, first, middle, inside) && cut(reads_ports, middle + 1, last, inside);
  }
  auto tables = AclClassTables::make(reads_ports, inside);
  if (tables == nullptr || ranges_.size() == kMaxRanges) return false;
  n_bytes_ += tables->size_bytes();
  if (n_bytes_ > kMaxBytes) return false;
  std::fill(range_of_.begin() + first, range_of_.begin() + last + 1,
            static_cast<uint8_t>(ranges_.size()));
  ranges_.push_back(std::move(tables));
  return true;
}

std::unique_ptr<AclClassForest> AclClassForest::make(bool reads_ports,
                                                     const std::vector<AclEntry>& entries) {
  auto forest = std::make_unique<AclClassForest>();
  forest->range_of_.assign(kHalf, 0);
  if (!forest->cut(reads_ports, 0, kHalf - 1, entries)) return nullptr;
  return forest;
}

// One packet at a time: lookups of successive packets still overlap, and no sorting is needed.
void AclClassForest::classify(const uint8_t* const* headers, uint32_t* ids,
                              uint32_t n) const noexcept {
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t half = header_at<net::Ipv4>(headers[i]).dst >> 16;
    ranges_[range_of_[half]]->classify(headers + i, ids + i, 1);
  }
}

}  // namespace batchplane
