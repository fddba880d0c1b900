// SPDX-License-Identifier: BSD-3-Clause
// acl_class_tables.cc - lookup in tables of equivalence classes, and their construction.
#include "modules/acl/acl_class_tables.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>

#include "base/net_headers.h"
#include "modules/headers/ipv4_header.h"

namespace batchplane {

namespace {

constexpr uint32_t kMaxClasses = 0xffff;
constexpr uint64_t kMaxCells = 3 << 20;      // 6 MB, of which traffic touches only a small part
constexpr uint64_t kMaxSteps = 100'000'000;  // 64-bit words processed by a build: tens of ms

// The distinct rule sets; the class of a header value is the number of its rule set.
class RuleSets {
 public:
  explicit RuleSets(uint32_t n_words) : n_words_(n_words) {}

  // Number of the set; nullopt if there are too many.
  std::optional<uint16_t> number_of(const uint64_t* words) {
    uint64_t hash = 0x9e3779b97f4a7c15ULL;
    for (uint32_t i = 0; i < n_words_; ++i) {
      hash = (hash ^ words[i]) * 0xff51afd7ed558ccdULL;
      hash ^= hash >> 32;
    }
    const auto [first, last] = numbers_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if (std::equal(words, words + n_words_, set(it->second))) return it->second;
    }
    const uint32_t number = size();
    if (number == kMaxClasses) return std::nullopt;
    words_.insert(words_.end(), words, words + n_words_);
    numbers_.emplace(hash, static_cast<uint16_t>(number));
    return static_cast<uint16_t>(number);
  }
  [[nodiscard]] const uint64_t* set(uint32_t number) const {
    return words_.data() + size_t{number} * n_words_;
  }
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(words_.size() / n_words_); }

 private:
  uint32_t n_words_;
  std::vector<uint64_t> words_;
  std::unordered_multimap<uint64_t, uint16_t> numbers_;
};

struct Range {
  uint32_t first = 0;
  uint32_t last = 0xffff;
};

// The upper or lower 16 bits of an IPv4 prefix.
Range half_of(const AclPrefix& prefix, bool is_high) {
  const uint32_t shift = is_high ? 16 : 0;
  const uint32_t address = net::load32(prefix.bytes.data());
  return {address >> shift & 0xffff, (address | ~net::mask4(prefix.length)) >> shift & 0xffff};
}

}  // namespace

// Builds one instance; any step may find that the tables become too large.
class AclClassBuilder {
 public:
  AclClassBuilder(AclClassTables& tables, const std::vector<AclEntry>& entries)
      : tables_(tables),
        entries_(entries),
        n_words_(static_cast<uint32_t>(entries.size() / 64 + 1)),
        words_(n_words_) {}

  bool build() {
    using T = AclClassTables;
    const auto sh = ranges(T::kSrcHigh, [](const AclMatch& m) { return half_of(m.src, true); });
    const auto sl = ranges(T::kSrcLow, [](const AclMatch& m) { return half_of(m.src, false); });
    const auto dh = ranges(T::kDstHigh, [](const AclMatch& m) { return half_of(m.dst, true); });
    const auto dl = ranges(T::kDstLow, [](const AclMatch& m) { return half_of(m.dst, false); });
    RuleSets transport = bytes(T::kProto, [](const AclMatch& m, uint32_t value) {
      return ((value ^ m.proto) & m.proto_mask) == 0;
    });
    if (tables_.reads_flags_) {
      const auto flags = bytes(T::kFlags, [](const AclMatch& m, uint32_t value) {
        return ((value ^ m.tcp_flags) & m.tcp_flags_mask) == 0;
      });
      transport = pair(transport, flags, tables_.proto_and_flags_);
    }
    if (tables_.reads_ports_) {
      const auto range = [](const AclPorts& ports) { return Range{ports.first, ports.last}; };
      const auto dp = ranges(T::kDstPort, [&](const AclMatch& m) { return range(m.dst_ports); });
      const auto sp = ranges(T::kSrcPort, [&](const AclMatch& m) { return range(m.src_ports); });
      transport = pair(transport, dp, tables_.with_dst_port_);
      transport = pair(transport, sp, tables_.transport_);
    }
    const RuleSets src = pair(sh, sl, tables_.src_);
    const RuleSets dst = pair(dh, dl, tables_.dst_);
    const RuleSets addresses = pair(src, dst, tables_.addresses_);
    add_last(addresses, transport);
    return !is_too_large_;
  }

 private:
  std::vector<uint16_t>& cells() { return tables_.cells_; }
  uint32_t room(uint64_t n_cells) {
    is_too_large_ = is_too_large_ || cells().size() + n_cells > kMaxCells;
    const auto at = static_cast<uint32_t>(cells().size());
    if (!is_too_large_) cells().resize(cells().size() + n_cells);
    return at;
  }
  void count_steps(uint64_t n) {
    n_steps_ += n * n_words_;
    is_too_large_ = is_too_large_ || n_steps_ > kMaxSteps;
  }
  uint16_t number_of(RuleSets& sets, const uint64_t* words) {
    const auto number = sets.number_of(words);
    is_too_large_ = is_too_large_ || !number;
    return number.value_or(0);
  }

  // A table for 16 header bits. The rule set changes only where a rule's range begins or has ended.
  template <class RangeOf>
  RuleSets ranges(AclClassTables::Chunk chunk, RangeOf range_of) {
    RuleSets sets(n_words_);
    std::vector<std::pair<uint32_t, uint32_t>> edges{
        {0, kNoRule}};  // position, rule that flips there
    for (uint32_t i = 0; i < entries_.size(); ++i) {
      const Range range = range_of(*entries_[i].match);
      edges.emplace_back(range.first, i);
      edges.emplace_back(range.last + 1, i);
    }
    std::ranges::sort(edges);
    const uint32_t at = tables_.chunk_at_[chunk] = room(1 << 16);
    count_steps(edges.size());
    if (is_too_large_) return sets;
    std::ranges::fill(words_, 0);
    for (size_t e = 0; e < edges.size();) {
      const uint32_t place = edges[e].first;
      for (; e < edges.size() && edges[e].first == place; ++e) flip(edges[e].second);
      if (place > 0xffff) break;
      const uint32_t end = e < edges.size() ? std::min(edges[e].first, 0x10000U) : 0x10000U;
      const uint16_t number = number_of(sets, words_.data());
      std::fill(cells().begin() + at + place, cells().begin() + at + end, number);
    }
    return sets;
  }

  // A table for one header byte.
  template <class Matches>
  RuleSets bytes(AclClassTables::Chunk chunk, Matches matches) {
    RuleSets sets(n_words_);
    const uint32_t at = tables_.chunk_at_[chunk] = room(256);
    if (is_too_large_) return sets;
    for (uint32_t value = 0; value < 256; ++value) {
      std::ranges::fill(words_, 0);
      for (uint32_t i = 0; i < entries_.size(); ++i) {
        if (matches(*entries_[i].match, value)) flip(i);
      }
      cells()[at + value] = number_of(sets, words_.data());
    }
    return sets;
  }

  RuleSets pair(const RuleSets& a, const RuleSets& b, AclClassTables::Pair& table) {
    RuleSets sets(n_words_);
    const uint64_t n_cells = uint64_t{a.size()} * b.size();
    table = {room(n_cells), b.size()};
    count_steps(n_cells);
    for (uint32_t i = 0; i < a.size() && !is_too_large_; ++i) {
      for (uint32_t j = 0; j < b.size(); ++j) {
        intersect(a.set(i), b.set(j));
        cells()[table.at + i * table.width + j] = number_of(sets, words_.data());
      }
    }
    return sets;
  }

  void add_last(const RuleSets& a, const RuleSets& b) {
    const uint64_t n_cells = uint64_t{a.size()} * b.size();
    tables_.last_ = {room(n_cells), b.size()};
    count_steps(n_cells);
    for (uint32_t i = 0; i < a.size() && !is_too_large_; ++i) {
      for (uint32_t j = 0; j < b.size(); ++j) {
        cells()[tables_.last_.at + i * b.size() + j] = first_id(a.set(i), b.set(j));
      }
    }
  }

  uint16_t first_id(const uint64_t* a, const uint64_t* b) const {
    for (uint32_t w = 0; w < n_words_; ++w) {
      const uint64_t both = a[w] & b[w];
      if (both == 0) continue;
      return static_cast<uint16_t>(
          entries_[w * 64 + static_cast<uint32_t>(std::countr_zero(both))].id);
    }
    return 0;
  }
  void intersect(const uint64_t* a, const uint64_t* b) {
    for (uint32_t w = 0; w < n_words_; ++w) words_[w] = a[w] & b[w];
  }
  void flip(uint32_t rule) {
    if (rule != kNoRule) words_[rule / 64] ^= 1ULL << rule % 64;
  }

  static constexpr uint32_t kNoRule = ~0U;

  AclClassTables& tables_;
  const std::vector<AclEntry>& entries_;
  const uint32_t n_words_;
  std::vector<uint64_t> words_;
  uint64_t n_steps_ = 0;
  bool is_too_large_ = false;
};

std::unique_ptr<AclClassTables> AclClassTables::make(bool reads_ports,
                                                     const std::vector<AclEntry>& entries) {
  auto tables = std::make_unique<AclClassTables>();
  tables->reads_ports_ = reads_ports;
  tables->reads_flags_ = reads_ports && std::ranges::any_of(entries, [](const AclEntry& entry) {
                           return entry.match->tcp_flags_mask != 0;
                         });
  if (!AclClassBuilder(*tables, entries).build()) return nullptr;
  tables->cells_.shrink_to_fit();
  return tables;
}

template <bool kReadsPorts, bool kReadsFlags>
void AclClassTables::classify_as(const uint8_t* const* headers, uint32_t* ids,
                                 uint32_t n) const noexcept {
  // Stores to ids may alias members, so the loop uses local copies.
  const uint16_t* const cells = cells_.data();
  uint32_t at[kChunks];
  std::copy_n(chunk_at_, kChunks, at);
  const Pair src = src_;
  const Pair dst = dst_;
  const Pair addresses = addresses_;
  const Pair proto_and_flags = proto_and_flags_;
  const Pair with_dst_port = with_dst_port_;
  const Pair with_src_port = transport_;
  const Pair last = last_;
  const auto in = [cells](const Pair& pair, uint32_t a, uint32_t b) -> uint32_t {
    return cells[pair.at + a * pair.width + b];
  };
  for (uint32_t i = 0; i < n; ++i) {
    const auto& ip = header_at<net::Ipv4>(headers[i]);
    const uint32_t s = ip.src;
    const uint32_t d = ip.dst;
    const uint32_t from =
        in(src, cells[at[kSrcHigh] + (s >> 16)], cells[at[kSrcLow] + (s & 0xffff)]);
    const uint32_t to = in(dst, cells[at[kDstHigh] + (d >> 16)], cells[at[kDstLow] + (d & 0xffff)]);
    uint32_t transport = cells[at[kProto] + ip.protocol];
    if constexpr (kReadsFlags) {
      const uint8_t flags = behind<net::Tcp>(ip).flags;
      transport = in(proto_and_flags, transport, cells[at[kFlags] + flags]);
    }
    if constexpr (kReadsPorts) {
      const auto& ports = behind<net::Be32>(ip);  // both ports in one load
      transport = in(with_dst_port, transport, cells[at[kDstPort] + (ports & 0xffff)]);
      transport = in(with_src_port, transport, cells[at[kSrcPort] + (ports >> 16)]);
    }
    ids[i] = in(last, in(addresses, from, to), transport);
  }
}

void AclClassTables::classify(const uint8_t* const* headers, uint32_t* ids,
                              uint32_t n) const noexcept {
  if (reads_flags_) {
    classify_as<true, true>(headers, ids, n);
  } else if (reads_ports_) {
    classify_as<true, false>(headers, ids, n);
  } else {
    classify_as<false, false>(headers, ids, n);
  }
}

}  // namespace batchplane
