// SPDX-License-Identifier: BSD-3-Clause
// reassembly_table.cc - chained hash table with an age list; fragments sorted by offset.
#include "modules/ip/reassembly_table.h"

#include <algorithm>
#include <bit>

#include "modules/headers/flow_key.h"

namespace batchplane {

ReassemblyTable::ReassemblyTable(uint32_t max_datagrams, uint32_t max_held_pkts)
    : datagrams_(max_datagrams),
      buckets_(std::bit_ceil(2 * max_datagrams), kNone),
      max_held_(max_held_pkts) {
  for (uint32_t i = max_datagrams; i-- > 0;) {
    datagrams_[i].next = free_;
    free_ = i;
  }
}

uint32_t ReassemblyTable::bucket_of(const DatagramKey& key) const {
  const uint64_t addresses = uint64_t{key.src} << 32 | key.dst;
  const uint64_t rest = uint64_t{key.id} << 32 | uint64_t{key.vrf} << 8 | key.protocol;
  return static_cast<uint32_t>(mix_words(addresses, rest, 0) >> 32) &
         static_cast<uint32_t>(buckets_.size() - 1);
}

uint32_t ReassemblyTable::find(const DatagramKey& key) const {
  uint32_t index = buckets_[bucket_of(key)];
  while (index != kNone && !(datagrams_[index].key == key)) index = datagrams_[index].next;
  return index;
}

uint32_t ReassemblyTable::add(const DatagramKey& key, uint64_t deadline_ns) {
  if (free_ == kNone) return kNone;
  const uint32_t index = free_;
  Datagram& datagram = datagrams_[index];
  free_ = datagram.next;
  datagram.key = key;
  datagram.deadline_ns = deadline_ns;
  datagram.received_bytes = datagram.total_bytes = datagram.n_parts = 0;
  datagram.fault = nullptr;
  uint32_t& bucket = buckets_[bucket_of(key)];
  datagram.next = bucket;
  bucket = index;
  datagram.older = newest_;
  datagram.newer = kNone;
  (newest_ == kNone ? oldest_ : datagrams_[newest_].newer) = index;
  newest_ = index;
  size_.store(size() + 1, std::memory_order_relaxed);
  return index;
}

void ReassemblyTable::remove(uint32_t index) {
  Datagram& datagram = datagrams_[index];
  uint32_t* link = &buckets_[bucket_of(datagram.key)];
  while (*link != index) link = &datagrams_[*link].next;
  *link = datagram.next;
  (datagram.older == kNone ? oldest_ : datagrams_[datagram.older].newer) = datagram.newer;
  (datagram.newer == kNone ? newest_ : datagrams_[datagram.newer].older) = datagram.older;
  datagram.next = free_;
  free_ = index;
  size_.store(size() - 1, std::memory_order_relaxed);
}

ReassemblyTable::Fit ReassemblyTable::fit(const Datagram& datagram, const FragmentPart& part,
                                          uint32_t& at) const {
  at = datagram.n_parts;
  while (at > 0 && datagram.parts[at - 1].offset_bytes > part.offset_bytes) --at;
  const uint32_t end_bytes = part.offset_bytes + part.bytes;
  if (at > 0) {
    const FragmentPart& before = datagram.parts[at - 1];
    if (before.offset_bytes == part.offset_bytes && before.bytes == part.bytes) {
      return Fit::kDuplicate;
    }
    if (before.offset_bytes + before.bytes > part.offset_bytes) return Fit::kOverlap;
  }
  if (at < datagram.n_parts && datagram.parts[at].offset_bytes < end_bytes) return Fit::kOverlap;
  if (datagram.total_bytes != 0 && end_bytes > datagram.total_bytes) return Fit::kOverlap;
  return datagram.n_parts == Datagram::kMaxParts ? Fit::kTooMany : Fit::kNew;
}

void ReassemblyTable::insert(Datagram& datagram, uint32_t at, const FragmentPart& part) {
  std::copy_backward(datagram.parts.begin() + at, datagram.parts.begin() + datagram.n_parts,
                     datagram.parts.begin() + datagram.n_parts + 1);
  datagram.parts[at] = part;
  ++datagram.n_parts;
  datagram.received_bytes += part.bytes;
}

}  // namespace batchplane
