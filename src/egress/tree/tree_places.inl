// SPDX-License-Identifier: BSD-3-Clause
// tree_places.inl - where the nodes of a tree stand at their parents. Part of tree_order.cc.
namespace batchplane::egress {

inline ChildLists& Tree::siblings_of(const TreeNode& node) noexcept {
  return rates_.inner(node.parent).children[node.priority];
}

inline int32_t Tree::quantum_bytes(const TreeNode& node) const noexcept {
  return static_cast<int32_t>(node.weight * unit_bytes_);
}

inline void Tree::append(uint32_t at, Place place) noexcept {
  TreeNode& node = nodes_[at];
  is_served_ = false;
  node.place = place;
  nodes_[node.parent].inner.active |= bit_of(place, node.priority);
  uint32_t& first = siblings_of(node).of(place);
  if (first == kNone) {
    first = node.next = node.before = at;
    return;
  }
  const uint32_t last = nodes_[first].before;
  node.next = first;
  node.before = last;
  nodes_[last].next = at;
  nodes_[first].before = at;
}

inline void Tree::unlink(uint32_t at) noexcept {
  TreeNode& node = nodes_[at];
  is_served_ = false;
  ChildLists& lists = siblings_of(node);
  uint32_t& first = lists.of(node.place);
  const Place place = std::exchange(node.place, Place::kOut);
  if (node.next != at) {
    nodes_[node.before].next = node.next;
    nodes_[node.next].before = node.before;
    if (first == at) first = node.next;
    return;
  }
  first = kNone;
  if (place != Place::kGreen && lists.has_excess()) return;
  nodes_[node.parent].inner.active &= static_cast<uint16_t>(~bit_of(place, node.priority));
}

// Into the excess: with its quantum unspent it goes before those that are in the round already.
inline void Tree::join_excess(uint32_t at) noexcept {
  TreeNode& node = nodes_[at];
  const uint16_t round = nodes_[node.parent].inner.rounds[node.priority];
  if (node.round != round) {
    node.round = round;
    node.credit_bytes = std::min(node.credit_bytes, 0) + quantum_bytes(node);
  }
  append(at, node.credit_bytes > 0 ? Place::kFresh : turn_in(static_cast<uint16_t>(round + 1)));
}

inline void Tree::wait(Shaper& shaper, uint32_t id, Shaper::Waits waits) noexcept {
  shaper.waits = waits;
  wheel_.put(rates_, id);
}

inline void Tree::stop_waiting(uint32_t shaper) noexcept {
  if (rates_[shaper].waits == Shaper::Waits::kNot) return;
  wheel_.take_out(rates_, shaper);
  rates_[shaper].waits = Shaper::Waits::kNot;
}

// kFresh stands for any place of the excess.
inline Place Tree::wanted_with_rates(TreeNode& node) noexcept {
  Shaper& shaper = rates_[node.shaper];
  if (shaper.waits == Shaper::Waits::kForCeil) return Place::kOut;
  if (shaper.ceil.is_set() && shaper.ceil_due_ns() > now_ns_) {
    stop_waiting(node.shaper);
    wait(shaper, node.shaper, Shaper::Waits::kForCeil);
    return Place::kOut;
  }
  if (!shaper.min.is_set() || shaper.waits == Shaper::Waits::kForMin) return Place::kFresh;
  if (node.place == Place::kOut) {
    shaper.min.forget_before(now_ns_ - std::min(now_ns_, capacity_.idle_credit_ns()));
  }
  if (shaper.min.is_paid(now_ns_)) return Place::kGreen;
  wait(shaper, node.shaper, Shaper::Waits::kForMin);
  return Place::kFresh;
}

inline Place Tree::wanted(uint32_t at) noexcept {
  TreeNode& node = nodes_[at];
  const bool has_pkts = is_inner(at) ? node.inner.active != 0 : node.backlog_pkts != 0;
  if (!has_pkts) {
    if (node.shaper != kNone) stop_waiting(node.shaper);
    return Place::kOut;
  }
  const Place by_rates = node.shaper == kNone ? Place::kFresh : wanted_with_rates(node);
  const bool has_green_below = is_inner(at) && (node.inner.active & kGreenBits) != 0;
  return by_rates == Place::kFresh && has_green_below ? Place::kGreen : by_rates;
}

// Returns whether that may move the parent, too.
inline bool Tree::place(uint32_t at) noexcept {
  TreeNode& node = nodes_[at];
  const Place want = wanted(at);
  const bool stays = (want == Place::kOut) == (node.place == Place::kOut) &&
                     (want == Place::kGreen) == (node.place == Place::kGreen);
  if (stays) [[likely]]
    return false;
  const uint16_t& active = nodes_[node.parent].inner.active;
  const uint16_t before = active;
  if (node.place != Place::kOut) unlink(at);
  if (want == Place::kGreen) append(at, Place::kGreen);
  if (want == Place::kFresh) join_excess(at);
  return (before == 0) != (active == 0) || ((before ^ active) & kGreenBits) != 0;
}

}  // namespace batchplane::egress
