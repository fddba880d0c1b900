// SPDX-License-Identifier: BSD-3-Clause
// qfq_groups.inl - how QfqGroups keeps its slots and its four sets.
#pragma once

namespace batchplane::egress {

// At the end of the slot of its start: those of one slot are served as they came.
template <class Table>
void QfqGroups<Table>::append(Table& table, uint32_t index, uint32_t id) noexcept {
  Group& group = groups_[index];
  QfqTimes& times = table[id];
  uint64_t ahead = (rounded(times.start, index) - group.start) >> (kMinShift + index);
  // Only weights that changed under way lead so far ahead; an earlier start does nobody harm.
  if (ahead >= kSlots - 1) [[unlikely]] {
    const uint64_t excess = (ahead - (kSlots - 2)) << (kMinShift + index);
    times.start -= excess;
    times.finish -= excess;
    ahead = kSlots - 2;
  }
  group.full |= 1U << ahead;
  Slot& slot = group.slots[(group.front + ahead) % kSlots];
  times.next = QfqTimes::kNobody;
  times.before = slot.last;
  if (slot.last == QfqTimes::kNobody) {
    slot.first = id;
  } else {
    table[slot.last].next = id;
  }
  slot.last = id;
}

template <class Table>
void QfqGroups<Table>::unlink(Table& table, Group& group, uint32_t slot_at, uint32_t id) noexcept {
  const QfqTimes& times = table[id];
  Slot& slot = group.slots[(group.front + slot_at) % kSlots];
  if (times.before == QfqTimes::kNobody) {
    slot.first = times.next;
  } else {
    table[times.before].next = times.next;
  }
  if (times.next == QfqTimes::kNobody) {
    slot.last = times.before;
  } else {
    table[times.next].before = times.before;
  }
  if (slot.first == QfqTimes::kNobody) group.full &= ~(1U << slot_at);
}

template <class Table>
void QfqGroups<Table>::insert(Table& table, uint32_t id) noexcept {
  const QfqTimes& times = table[id];
  const auto index = static_cast<uint32_t>(times.group);
  Group& group = groups_[index];
  const uint64_t start = rounded(times.start, index);
  if (group.full == 0) {
    // Nobody there at all: what is idle does not wait for its virtual start.
    if ((sets_[kReady] | sets_[kWaiting]) == 0 && is_later(start, virtual_time_)) {
      virtual_time_ = start;
    }
    begin_at(group, index, start);
    put_in_set(index);
  } else if (is_later(group.start, start)) {
    // The group begins earlier than it did; it had not begun, so it blocked nobody.
    const uint64_t slots = (group.start - start) >> (kMinShift + index);
    group.full <<= slots;
    group.front = static_cast<uint32_t>((group.front - slots) % kSlots);
    begin_at(group, index, start);
    for (uint64_t& set : sets_) set &= ~(1ULL << index);
    put_in_set(index);
  }
  append(table, index, id);
}

// Groups that begin between two virtual times: all those up to the highest bit in which they differ.
template <class Table>
void QfqGroups<Table>::let_begin(uint64_t from, uint64_t to) noexcept {
  const uint64_t changed = (from ^ to) >> kMinShift;
  if (changed == 0) return;
  const auto width = static_cast<uint32_t>(std::bit_width(changed));
  const uint64_t mask = width >= 64 ? ~0ULL : (1ULL << width) - 1;
  move(mask, kWaiting, kReady);
  move(mask, kWaitingBlocked, kBlocked);
}

template <class Table>
uint32_t QfqGroups<Table>::first() noexcept {
  if (sets_[kReady] == 0 && sets_[kWaiting] == 0) return QfqTimes::kNobody;
  if (sets_[kReady] == 0) {
    const Group& next = groups_[static_cast<uint32_t>(std::countr_zero(sets_[kWaiting]))];
    let_begin(virtual_time_, next.start);
    virtual_time_ = next.start;
  }
  const Group& group = groups_[static_cast<uint32_t>(std::countr_zero(sets_[kReady]))];
  return group.slots[group.front].first;
}

// After the first slot of the ready group `index` was emptied, or may have been: the group begins at
// its next slot, and those that it blocked go on unless it is blocked by another still.
template <class Table>
void QfqGroups<Table>::after_front_changed(uint32_t index) noexcept {
  Group& group = groups_[index];
  if ((group.full & 1) != 0) return;
  const uint64_t old_finish = group.finish;
  sets_[kReady] &= ~(1ULL << index);
  if (group.full != 0) {
    const auto slots = static_cast<uint32_t>(std::countr_zero(group.full));
    group.full >>= slots;
    group.front = (group.front + slots) % kSlots;
    begin_at(group, index, group.start + (uint64_t{slots} << (kMinShift + index)));
    put_in_set(index);
  }
  const uint64_t above = sets_[kReady] & ~((2ULL << index) - 1);
  if (above != 0) {
    const Group& next = groups_[static_cast<uint32_t>(std::countr_zero(above))];
    if (!is_later(next.finish, old_finish)) return;
  }
  const uint64_t below = (1ULL << index) - 1;
  move(below, kBlocked, kReady);
  move(below, kWaitingBlocked, kWaiting);
}

template <class Table>
void QfqGroups<Table>::settle_first(Table& table, uint32_t id) noexcept {
  QfqTimes& times = table[id];
  const auto index = static_cast<uint32_t>(times.group);
  Group& group = groups_[index];
  if (rounded(times.start, index) == group.start) return;
  unlink(table, group, 0, id);
  append(table, index, id);
  after_front_changed(index);
}

template <class Table>
void QfqGroups<Table>::erase_first(Table& table, uint32_t id) noexcept {
  const auto index = static_cast<uint32_t>(table[id].group);
  unlink(table, groups_[index], 0, id);
  after_front_changed(index);
}

template <class Table>
void QfqGroups<Table>::erase(Table& table, uint32_t id) noexcept {
  const auto index = static_cast<uint32_t>(table[id].group);
  Group& group = groups_[index];
  const uint64_t start = rounded(table[id].start, index);
  unlink(table, group, static_cast<uint32_t>((start - group.start) >> (kMinShift + index)), id);
  if (group.full != 0) {
    const auto slots = static_cast<uint32_t>(std::countr_zero(group.full));
    group.full >>= slots;
    group.front = (group.front + slots) % kSlots;
    begin_at(group, index, group.start + (uint64_t{slots} << (kMinShift + index)));
  }
  sort_all();
}

// Every group into its set, by the definition: those above first.
template <class Table>
void QfqGroups<Table>::sort_all() noexcept {
  sets_ = {};
  for (uint32_t index = kGroups; index-- > 0;) {
    if (groups_[index].full != 0) put_in_set(index);
  }
}

}  // namespace batchplane::egress
