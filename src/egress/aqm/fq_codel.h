// SPDX-License-Identifier: BSD-3-Clause
// fq_codel.h - FQ-CoDel (RFC 8290) for the queue of one flow: splits it by connection, serves
// connections in turn, new ones first, and keeps each one's delay short by CoDel. A queue with one
// connection may use PIE instead.
//
// Connections share a store; only those with packets take memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/big_array.h"
#include "egress/aqm/codel.h"
#include "egress/aqm/pie.h"
#include "egress/discipline/pkt_store.h"

namespace batchplane::egress {

// Descriptor::flow of packets for such queues holds the flow, a hash of the connection, and whether
// the sender supports ECN. On dequeue it holds the flow, and kMarkBit says whether to mark the packet.
inline constexpr uint32_t kFlowMask = kMaxFlows - 1;
inline constexpr uint32_t kMarkBit = 1U << 31;
inline constexpr uint32_t kConnections = kMarkBit / kMaxFlows;
inline uint32_t flow_word(uint32_t flow, uint32_t hash, bool can_mark) {
  return flow | hash % kConnections * kMaxFlows | (can_mark ? kMarkBit : 0);
}

// The algorithm that keeps each connection's delay short.
enum class Aqm : uint8_t { kCodel, kPie };

// Dropped packets, for the owner to take. While it is full, nothing more is dropped.
struct DropList {
  static constexpr uint32_t kMax = 64;
  uint32_t n = 0;
  Descriptor all[kMax];
};

// A flow's connections, in the order of their turns.
struct FqLists {
  uint32_t first_new = kNone;
  uint32_t last_new = kNone;
  uint32_t first_old = kNone;
  uint32_t last_old = kNone;
};

class FqCodel {
 public:
  FqCodel(uint32_t connections, CodelParams params, uint32_t lmax_bytes,
          uint64_t pie_target_ns = kPieTargetNs)
      : codel_(params, lmax_bytes),
        pie_(pie_target_ns, lmax_bytes),
        quantum_bytes_(static_cast<int32_t>(lmax_bytes)),
        all_(connections),
        heads_(std::bit_ceil(std::max(connections, 1U)), kNone) {
    for (uint32_t c = 0; c < connections; ++c) all_[c].next = c + 1 < connections ? c + 1 : kNone;
    free_ = connections == 0 ? kNone : 0;
  }

  // To be called some time before push().
  void prefetch(uint32_t word) const noexcept {
    __builtin_prefetch(&heads_[head_of(word & ~kMarkBit)]);
  }
  void prefetch_connection(uint32_t word) const noexcept {
    const uint32_t at = heads_[head_of(word & ~kMarkBit)];
    if (at != kNone) __builtin_prefetch(&all_[at], 1);
  }
  // False: no room.
  bool push(PktStore& pkts, FqLists& lists, const Descriptor& pkt, Aqm aqm = Aqm::kCodel) noexcept {
    const uint32_t key = pkt.flow & ~kMarkBit;
    uint32_t at = find(key);
    const bool is_new = at == kNone;
    if (is_new && (at = take(key, aqm)) == kNone) return false;
    Connection& connection = all_[at];
    if (!pkts.push(connection.queue, connection.is_empty(), with_mark(pkt))) {
      if (is_new) give_back(at);
      return false;
    }
    ++connection.backlog_pkts;
    connection.backlog_bytes += pkt.len_bytes();
    if (!is_new) return true;
    connection.credit_bytes = quantum_bytes_;
    append(lists.first_new, lists.last_new, at);
    return true;
  }

  // Whether there is room for a packet of this connection, apart from room in the packet store.
  [[nodiscard]] bool has_room_for(uint32_t word) const noexcept {
    return free_ != kNone || find(word & ~kMarkBit) != kNone;
  }
  [[nodiscard]] uint32_t backlog_pkts(uint32_t word) const noexcept {
    const uint32_t at = find(word & ~kMarkBit);
    return at == kNone ? 0 : all_[at].backlog_pkts;
  }
  // Removes the oldest packet of the longest queue among this connection and the first few in turn.
  // The lists must not be empty.
  Descriptor push_out(PktStore& pkts, const FqLists& lists, uint32_t word) noexcept {
    uint32_t longest = find(word & ~kMarkBit);
    uint32_t looks = kLooks;
    for (const uint32_t first : {lists.first_new, lists.first_old}) {
      for (uint32_t at = first; at != kNone; at = all_[at].next) {
        const bool has_pkts = longest != kNone && !all_[longest].is_empty();
        if (has_pkts && looks-- == 0) return take_head(pkts, all_[longest]);
        if (!has_pkts || all_[at].backlog_pkts > all_[longest].backlog_pkts) longest = at;
      }
    }
    return take_head(pkts, all_[longest]);
  }

  // The next packet; the lists must not be empty. Packets dropped on the way are added to `drops`.
  Descriptor pop(PktStore& pkts, FqLists& lists, uint64_t now_ns, uint64_t target_ns,
                 DropList& drops, Aqm aqm = Aqm::kCodel) noexcept {
    for (;;) {
      const bool is_new = lists.first_new != kNone;
      const uint32_t at = is_new ? lists.first_new : lists.first_old;
      Connection& connection = all_[at];
      const bool is_empty = connection.is_empty();
      if (!is_empty && connection.credit_bytes > 0) {
        const Descriptor pkt = pop_of(pkts, connection, now_ns, target_ns, drops, aqm);
        connection.credit_bytes -= static_cast<int32_t>(pkt.len_bytes());
        return pkt;
      }
      (is_new ? lists.first_new : lists.first_old) = connection.next;
      if (is_empty && !is_new) {
        give_back(at);
        continue;
      }
      // A connection that becomes empty waits for one more turn, or it would come back as a new
      // one.
      if (!is_empty) connection.credit_bytes += quantum_bytes_;
      append(lists.first_old, lists.last_old, at);
    }
  }
  // Makes room by dropping half of the longest connection's queue, but at most `most_pkts` and what
  // `drops` has room for.
  void shed(PktStore& pkts, FqLists& lists, DropList& drops, uint32_t most_pkts) noexcept {
    uint32_t longest = kNone;
    for (const uint32_t first : {lists.first_new, lists.first_old}) {
      for (uint32_t at = first; at != kNone; at = all_[at].next) {
        const bool is_longer =
            longest == kNone || all_[at].backlog_bytes > all_[longest].backlog_bytes;
        if (is_longer) longest = at;
      }
    }
    if (longest == kNone) return;
    Connection& connection = all_[longest];
    const uint32_t left_bytes = connection.backlog_bytes / 2;
    for (; most_pkts > 0 && !connection.is_empty() && drops.n < DropList::kMax / 2; --most_pkts) {
      if (connection.backlog_bytes <= left_bytes) return;
      Descriptor pkt = take_head(pkts, connection);
      pkt.flow &= kFlowMask;
      drops.all[drops.n++] = pkt;
    }
  }

  // Turns a queue into the first connection of a flow that has none. It goes before all others
  // until it is empty, so no packet overtakes another of its connection. False: no room.
  bool take_over(FqLists& lists, uint32_t flow, const PktQueue& queue, uint32_t backlog_pkts,
                 uint32_t backlog_bytes, Aqm aqm = Aqm::kCodel) noexcept {
    const uint32_t at = take(flow, aqm);
    if (at == kNone) return false;
    all_[at].queue = queue;
    all_[at].backlog_pkts = backlog_pkts;
    all_[at].backlog_bytes = backlog_bytes;
    all_[at].credit_bytes = std::numeric_limits<int32_t>::max();
    append(lists.first_new, lists.last_new, at);
    return true;
  }
  // Without AQM.
  Descriptor drain(PktStore& pkts, FqLists& lists) noexcept {
    for (uint32_t* first : {&lists.first_new, &lists.first_old}) {
      while (*first != kNone) {
        Connection& connection = all_[*first];
        if (!connection.is_empty()) return take_head(pkts, connection);
        const uint32_t at = *first;
        *first = connection.next;
        give_back(at);
      }
    }
    return {};
  }
  // For a flow without packets: removes empty connections that wait for a last turn.
  void clear(FqLists& lists) noexcept {
    for (uint32_t* first : {&lists.first_new, &lists.first_old}) {
      while (*first != kNone) {
        const uint32_t at = *first;
        *first = all_[at].next;
        give_back(at);
      }
    }
    lists = {};
  }

 private:
  struct alignas(64) Connection {
    Connection() : codel() {}
    PktQueue queue;
    uint32_t key = 0;
    uint32_t chain = kNone;  // connections with the same hash head
    uint32_t next = kNone;
    uint32_t backlog_pkts = 0;
    uint32_t backlog_bytes = 0;
    int32_t credit_bytes = 0;
    union {
      CodelState codel;
      PieState pie;
    };

    [[nodiscard]] bool is_empty() const { return backlog_pkts == 0; }
  };
  static_assert(sizeof(Connection) == 64);

  // The highest bit of a handle, which no user-space address uses.
  static constexpr uint64_t kCanMark = 1ULL << 63;
  static constexpr uint32_t kLooks = 8;
  static Descriptor with_mark(const Descriptor& pkt) {
    Descriptor marked = pkt;
    if ((pkt.flow & kMarkBit) != 0) marked.handle_and_len |= kCanMark;
    return marked;
  }

  [[nodiscard]] uint32_t head_of(uint32_t key) const {
    return key * 0x9e3779b1U >> 7 & static_cast<uint32_t>(heads_.size() - 1);
  }
  [[nodiscard]] uint32_t find(uint32_t key) const noexcept {
    uint32_t at = heads_[head_of(key)];
    while (at != kNone && all_[at].key != key) at = all_[at].chain;
    return at;
  }
  uint32_t take(uint32_t key, Aqm aqm) noexcept {
    const uint32_t at = free_;
    if (at == kNone) return kNone;
    free_ = all_[at].next;
    uint32_t& head = heads_[head_of(key)];
    all_[at] = Connection();
    if (aqm == Aqm::kPie) std::construct_at(&all_[at].pie);
    all_[at].key = key;
    all_[at].chain = head;
    head = at;
    return at;
  }
  void give_back(uint32_t at) noexcept {
    uint32_t* link = &heads_[head_of(all_[at].key)];
    while (*link != at) link = &all_[*link].chain;
    *link = all_[at].chain;
    all_[at].next = free_;
    free_ = at;
  }
  void append(uint32_t& first, uint32_t& last, uint32_t at) noexcept {
    all_[at].next = kNone;
    if (first == kNone) {
      first = at;
    } else {
      all_[last].next = at;
    }
    last = at;
  }

  Descriptor take_head(PktStore& pkts, Connection& connection) noexcept {
    Descriptor pkt = pkts.pop(connection.queue);
    const bool can_mark = (pkt.handle_and_len & kCanMark) != 0;
    pkt.handle_and_len &= ~kCanMark;
    pkt.flow = (connection.key & kFlowMask) | (can_mark ? kMarkBit : 0);
    --connection.backlog_pkts;
    connection.backlog_bytes -= pkt.len_bytes();
    return pkt;
  }
  Descriptor pop_of(PktStore& pkts, Connection& connection, uint64_t now_ns, uint64_t target_ns,
                    DropList& drops, Aqm aqm) noexcept {
    for (;;) {
      Descriptor pkt = take_head(pkts, connection);
      const bool can_mark = (pkt.flow & kMarkBit) != 0;
      pkt.flow &= ~kMarkBit;
      if (drops.n == DropList::kMax) return pkt;
      const uint64_t waited_ns = pkt.waited_ns(now_ns);
      const uint32_t left_bytes = connection.backlog_bytes;
      const Verdict verdict =
          aqm == Aqm::kPie
              ? pie_.judge(connection.pie, waited_ns, target_ns, left_bytes, now_ns, can_mark)
              : codel_.judge(connection.codel, waited_ns, target_ns, left_bytes, now_ns, can_mark);
      if (verdict == Verdict::kMark) pkt.flow |= kMarkBit;
      if (verdict != Verdict::kDrop) return pkt;
      drops.all[drops.n++] = pkt;
    }
  }

  Codel codel_;
  Pie pie_;
  int32_t quantum_bytes_;
  BigArray<Connection> all_;
  std::vector<uint32_t> heads_;
  uint32_t free_ = kNone;
};

}  // namespace batchplane::egress
