// SPDX-License-Identifier: BSD-3-Clause
// session_rules.h - what workers read of mobile sessions: which rule a packet matches, and what the
// rule asks for.
//
// A rule is a packet detection rule (PDR) with those parts of its forwarding action, QoS
// enforcement and usage reporting rules (FAR, QER, URR) that every packet needs: one cache line.
// The state that packets change (counts, meters) is separate, in PdrState, and is the same
// whichever copy of the rules a worker reads.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/big_array.h"
#include "base/flat_table.h"
#include "base/prefetch.h"
#include "modules/common/tally.h"
#include "modules/session/session_index.h"
#include "modules/session/session_quota.h"

namespace batchplane::session {

inline constexpr uint32_t kNone = ~0U;
inline constexpr uint32_t kSlotBits = 24;
inline constexpr uint32_t kMaxSlots = 1U << kSlotBits;
inline constexpr uint8_t kAnyQfi = 0xff;  // in a PDR: matches any; in a QER: sets none

// Grows in chunks of one huge page, without moving its elements.
template <class T>
class PagedArray {
 public:
  static constexpr uint32_t kPageItems = (2U << 20) / sizeof(T);

  [[nodiscard]] const T& operator[](uint32_t i) const {
    return pages_[i / kPageItems][i % kPageItems];
  }
  [[nodiscard]] T& operator[](uint32_t i) { return pages_[i / kPageItems][i % kPageItems]; }
  [[nodiscard]] bool holds(uint32_t i) const { return i < size_; }
  void reserve(uint32_t n) {
    while (owned_.size() * kPageItems < n) {
      owned_.push_back(std::make_unique<BigArray<T>>(kPageItems));
      pages_[owned_.size() - 1] = owned_.back()->data();
    }
    size_ = static_cast<uint32_t>(owned_.size() * kPageItems);
  }
  [[nodiscard]] size_t size_bytes() const { return owned_.size() * kPageItems * sizeof(T); }

 private:
  std::array<T*, kMaxSlots / kPageItems> pages_{};
  uint32_t size_ = 0;
  std::vector<std::unique_ptr<BigArray<T>>> owned_;
};

// A meter's rate: the time that 1024 bytes take, in 1/256 ns; 0 = no limit.
struct MeterRate {
  uint64_t cost = 0;
  uint64_t burst = 0;  // 1/256 ns that the meter may run ahead of the clock
};

// A MeterRate in one word. The cost is exact from 2 Mbit/s on and within one part in 500 million
// below; the burst is rounded up to 64 ns.
struct PackedRate {
  uint64_t bits = 0;

  static PackedRate of(const MeterRate& rate) {
    const auto extra = static_cast<uint64_t>(std::max<int>(std::bit_width(rate.cost) - 30, 0));
    const uint64_t burst = std::min((rate.burst + 0x3fff) >> 14, (uint64_t{1} << 28) - 1);
    return {rate.cost >> extra | (22 - extra) << 30 | burst << 36};
  }
  [[nodiscard]] bool has_limit() const { return (bits & 0x3fff'ffff) != 0; }
  // The cost of a packet in 1/256 ns.
  [[nodiscard]] uint64_t cost(uint32_t bytes) const {
    return (bytes * (bits & 0x3fff'ffff) << 12) >> (bits >> 30 & 63);
  }
  [[nodiscard]] uint64_t burst() const { return bits >> 36 << 14; }
};

struct alignas(64) Rule {
  enum Flag : uint8_t {
    kUplink = 1,
    kForwards = 2,   // the FAR's action
    kGateOpen = 4,   // of all QERs, in the rule's direction
    kHasTunnel = 8,  // the FAR adds an outer header
    kPeer6 = 16,     // the outer header is IPv6
    kBuffers = 32,   // the FAR's action
    kNotifies = 64,  // buffering is reported to the control plane
    kShares = 128,   // has meters or quotas that other rules share
  };
  uint32_t next = kNone;    // next rule of the same tunnel or user, in order of precedence
  uint32_t filter = kNone;  // first traffic filter; none: matches every packet
  uint32_t ue_raw = 0;      // the user's address in network order; 0 = any
  uint32_t peer_raw = 0;    // of the outer header; for IPv6, an index into peers6
  uint32_t peer_teid_raw = 0;
  std::array<uint32_t, 2> shared = {kNone, kNone};  // meters that other rules share
  uint16_t bearer = 0;
  uint16_t group = 0;
  uint8_t generation = 0;  // of the slot; 0: the slot is empty
  uint8_t flags = 0;
  uint8_t match_qfi = kAnyQfi;
  uint8_t qfi = kAnyQfi;
  uint32_t session = kNone;  // its number
  PackedRate own;            // for PdrState
  uint32_t quotas = kNone;   // first of the quotas that packets are charged to
  uint64_t ue6_raw = 0;      // upper half of the user's IPv6 prefix

  [[nodiscard]] bool is(uint8_t wanted) const { return (flags & wanted) == wanted; }
};
static_assert(sizeof(Rule) == 64);

// The part that most lookups need, eight to a cache line: those of 100,000 users fit into the L2
// cache.
struct alignas(8) RuleHead {
  uint8_t generation = 0;
  uint8_t flags = 0;
  uint16_t bearer = 0;
  uint16_t group = 0;

  [[nodiscard]] bool is(uint8_t wanted) const { return (flags & wanted) == wanted; }
};
static_assert(sizeof(RuleHead) == 8);
inline RuleHead head_of(const Rule& rule) {
  return {rule.generation, rule.flags, rule.bearer, rule.group};
}

// One flow description of a service data flow; addresses and masks in network order.
struct Filter {
  uint32_t remote = 0;
  uint32_t remote_mask = 0;
  uint32_t local = 0;
  uint32_t local_mask = 0;
  uint16_t remote_low = 0;
  uint16_t remote_high = 0xffff;
  uint16_t local_low = 0;
  uint16_t local_high = 0xffff;
  uint32_t next = kNone;
  uint8_t proto = 0;
  bool is_any_proto = true;

  [[nodiscard]] bool wants_ports() const {
    return remote_low != 0 || remote_high != 0xffff || local_low != 0 || local_high != 0xffff;
  }
};

// Counts and meter of one rule. Owner: the worker that gets packets of the rule's direction; `rate`
// belongs to the control thread. `rate` is here and not in the rule so that enforcement reads one
// cache line of each rule instead of two. Half a line is enough: with many users these states are
// what misses the caches most.
struct alignas(32) PdrState {
  Tally pkts;
  Tally bytes;
  Tally due;   // of the meter: when, in 1/256 ns, the passed packets are paid for
  Tally rate;  // of the meter: a PackedRate

  [[nodiscard]] PackedRate packed_rate() const { return PackedRate{rate.value()}; }
};
static_assert(sizeof(PdrState) == 32);

// Uplink and downlink rules get slots in alternate runs of this many: workers of one direction
// never write a cache line that workers of the other read, and a module that sees one direction
// only uses all of each line it reads.
inline constexpr uint32_t kRunSlots = 64;
constexpr uint32_t slot_at(uint32_t number, bool is_uplink) {
  return (number / kRunSlots * 2 + (is_uplink ? 0 : 1)) * kRunSlots + number % kRunSlots;
}
constexpr bool is_uplink_slot(uint32_t slot) { return slot / kRunSlots % 2 == 0; }

// The mark that a packet carries from the lookup to the modules behind it. Its generation, never 0,
// shows whether the slot has since been given to another rule.
template <class AnyRule>
uint32_t mark_of(uint32_t slot, const AnyRule& rule) {
  return uint32_t{rule.generation} << kSlotBits | slot;
}
inline uint32_t slot_of(uint32_t mark) { return mark & (kMaxSlots - 1); }
template <class AnyRule>
bool is_current(uint32_t mark, const AnyRule& rule) {
  return mark >> kSlotBits == rule.generation && rule.generation != 0;
}

// A usage reporting rule with thresholds or quotas, and the rules whose counts it adds up.
struct Watch {
  uint64_t volume_bytes = 0;
  uint64_t up_bytes = 0;
  uint64_t down_bytes = 0;
  uint64_t time_ns = 0;
  uint32_t session = kNone;  // its number; none: this entry is unused
  uint32_t urr = 0;
  uint32_t first = kNone;
  uint32_t quotas = kNone;  // the first of its quotas
};
struct WatchedRule {
  uint32_t slot = kNone;
  uint32_t next = kNone;
  bool is_uplink = false;
};

// Usage under a usage reporting rule.
struct Used {
  uint64_t up_bytes = 0;
  uint64_t down_bytes = 0;
  uint64_t up_pkts = 0;
  uint64_t down_pkts = 0;

  void add(const Used& other) {
    up_bytes += other.up_bytes;
    down_bytes += other.down_bytes;
    up_pkts += other.up_pkts;
    down_pkts += other.down_pkts;
  }
  void take_off(const Used& other) {
    add({-other.up_bytes, -other.down_bytes, -other.up_pkts, -other.down_pkts});
  }
  [[nodiscard]] bool operator==(const Used&) const = default;
};

// Usage of a watched rule that has been reported. Owner: the worker that watches usage; `carried`
// belongs to the control thread: counts of rules at the time they joined (subtracted) or left
// (added).
struct alignas(64) UsageState {
  Tally up_bytes;
  Tally down_bytes;
  Tally up_pkts;
  Tally down_pkts;
  Tally since_ns;  // 0: not checked yet
  Tally reports;
  Tally carried_up_bytes;
  Tally carried_down_bytes;
  Tally carried_up_pkts;
  Tally carried_down_pkts;
};

using Peer6 = std::array<uint8_t, 16>;  // network order

// Where a list of rules begins. If the first rule takes every packet, so that the lookup need not
// read it, this is the mark for those packets; otherwise only the slot, with generation 0.
struct UserEntry {
  uint32_t mark = kNone;
};
struct TunnelEntry {
  uint32_t mark = kNone;
  uint32_t ue_raw = 0;  // with a full mark: the source address that IPv4 packets must have
};
inline bool is_whole(uint32_t mark) { return mark >> kSlotBits != 0 && mark != kNone; }

struct RuleTables {
  SessionIndex<TunnelEntry> by_teid;  // tunnel endpoint, host order
  SessionIndex<UserEntry> by_ue;      // IPv4 address, network order
  FlatTable<1> by_ue6;                // first 8 bytes, network order -> slot of the first rule
  PagedArray<Rule> rules;
  PagedArray<RuleHead> heads;
  std::vector<Filter> filters;
  std::vector<MeterRate> meters;
  std::vector<Peer6> peers6;
  std::vector<Watch> watches;
  std::vector<WatchedRule> watched;
  std::vector<Quota> quotas;        // linked lists, one per rule or watch
  std::vector<uint16_t> hold_pkts;  // by session number
  uint64_t version = 0;             // rises with each edit
  bool is_large = false;

  // Prefetches the packets' rules, unless there are so few that they are surely in the L2 cache.
  template <class Batch>
  void prefetch(const Batch& batch) const {
    if (!is_large) return;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      const uint32_t slot = slot_of(batch.pkts[i]->mark());
      if (rules.holds(slot)) prefetch_for_read(&rules[slot]);
    }
  }
  template <class Batch>
  void prefetch_heads(const Batch& batch) const {
    if (!is_large) return;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      const uint32_t slot = slot_of(batch.pkts[i]->mark());
      if (heads.holds(slot)) prefetch_for_read(&heads[slot]);
    }
  }
  // Prefetches what choose() will read from `entries` on, unless the tables are small: first these
  // rules, then their filters and next rules; and the heads, if `needs_heads`.
  template <class Entry>
  void prefetch_choice(const Entry* entries, uint32_t n, bool needs_heads) const {
    if (!is_large) return;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t mark = entries[i].mark;
      if (mark == kNone) continue;
      if (!is_whole(mark)) prefetch_for_read(&rules[mark]);
      // For a list, too: the heads of its rules are adjacent or nearly so.
      if (needs_heads) prefetch_for_read(&heads[slot_of(mark)]);
    }
    for (uint32_t i = 0; i < n && !filters.empty(); ++i) {
      const uint32_t mark = entries[i].mark;
      if (mark == kNone || is_whole(mark)) continue;
      const Rule& rule = rules[mark];
      if (rule.filter != kNone) prefetch_for_read(&filters[rule.filter]);
      if (rule.next != kNone) prefetch_for_read(&rules[rule.next]);
    }
  }
  [[nodiscard]] const RuleHead* find_head(uint32_t mark) const {
    const uint32_t slot = slot_of(mark);
    if (!heads.holds(slot)) return nullptr;
    const RuleHead& head = heads[slot];
    return is_current(mark, head) ? &head : nullptr;
  }
  // The packet's rule; nullptr when it is gone.
  [[nodiscard]] const Rule* find(uint32_t mark) const {
    const uint32_t slot = slot_of(mark);
    if (!rules.holds(slot)) return nullptr;
    const Rule& rule = rules[slot];
    return is_current(mark, rule) ? &rule : nullptr;
  }
  [[nodiscard]] size_t size_bytes() const {
    return by_teid.size_bytes() + by_ue.size_bytes() + by_ue6.size_bytes() + rules.size_bytes() +
           heads.size_bytes() + filters.size() * sizeof(Filter) +
           meters.size() * sizeof(MeterRate) + peers6.size() * sizeof(Peer6) +
           watches.size() * sizeof(Watch) + watched.size() * sizeof(WatchedRule) +
           quotas.size() * sizeof(Quota) + hold_pkts.size() * sizeof(uint16_t);
  }
};

// The first rule of the list from `head` on that the packet matches; kNone if none does.
[[nodiscard]] uint32_t choose_among(const RuleTables& tables, uint32_t head, const uint8_t* ip,
                                    uint32_t room_bytes, bool is_uplink, uint8_t qfi) noexcept;

// `ip` holds at least a complete IPv4 header, or a complete IPv6 header.
[[nodiscard]] inline uint32_t choose(const RuleTables& tables, uint32_t head, const uint8_t* ip,
                                     uint32_t room_bytes, bool is_uplink, uint8_t qfi) noexcept {
  const Rule& rule = tables.rules[head];
  if (rule.next == kNone && rule.filter == kNone && rule.match_qfi == kAnyQfi) [[likely]]
    return head;
  return choose_among(tables, head, ip, room_bytes, is_uplink, qfi);
}

}  // namespace batchplane::session
