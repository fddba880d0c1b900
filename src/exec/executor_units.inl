// SPDX-License-Identifier: BSD-3-Clause
// executor_units.inl - explicit scheduling: units take turns instead of running to completion.
#pragma once

namespace batchplane::exec {

// Upper limit of a turn's charge, since the unit is not to blame for a stall of the machine.
inline constexpr uint64_t kMaxChargedNs = 10'000'000;

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::schedule(const UnitPlan& plan) {
  units_ = std::make_unique<UnitQueues<Handle>>(plan, static_cast<uint32_t>(nodes_.size()));
  for (uint32_t u = 1; u < plan.units.size(); ++u) {
    units_->units[u].queue = nodes_[plan.units[u].rank].queue;
    refresh_unit(u);
  }
}

// The cost of the last turn is known at the next reading of the clock.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::settle_charge(uint64_t now_ns) {
  if (units_ == nullptr || units_->charged_unit == UnitSchedule::kNobody) return;
  const uint64_t took_ns = now_ns - units_->turn_began_ns;
  const bool by_count = units_->how.by == ScheduleBy::kCount;
  units_->schedule.charge(units_->charged_unit,
                          by_count ? 1 : std::clamp<uint64_t>(took_ns, 1, kMaxChargedNs));
  units_->charged_unit = UnitSchedule::kNobody;
}

template <class Traits, RunOrder Order>
uint32_t Executor<Traits, Order>::next_unit(bool with_input) {
  return units_->schedule.pick(with_input);
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::note_idle_turn(uint64_t now_ns) {
  if (units_ == nullptr) return;
  settle_charge(now_ns);
  // Picks as a loop does: if the input is blocked, it is not polled in vain and keeps its share.
  if (next_unit(true) == UnitSchedule::kInput) (void)next_unit(false);
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::begin_turn(uint32_t unit) {
  units_->is_polling = unit == UnitSchedule::kInput;
  if (!units_->is_polling || units_->how.backpressure != Backpressure::kEarlyDrop) return;
  // Input for a congested chain will be dropped; packets queued before this turn are kept.
  for (auto& each : units_->units) {
    if (each.is_fed_by_input) each.settled_pkts = each.queue->size_pkts;
  }
}

// `began_ns`: the start of the loop.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::end_turn(uint32_t unit, uint64_t began_ns) {
  units_->is_polling = false;
  units_->charged_unit = unit;
  units_->turn_began_ns = began_ns;
  if (units_->shares_worker) settle_charge(read_clock());
}

template <class Traits, RunOrder Order>
uint32_t Executor<Traits, Order>::run_unit(uint32_t u) {
  const auto& unit = units_->units[u];
  const uint32_t held = unit.queue->size_pkts;
  const bool is_early = held < units_->threshold_pkts(unit, ctx_.now_ns, ctx_.batch_limit_pkts);
  return fire_unit(u, is_early ? Cause::kAge : Cause::kFull);
}

template <class Traits, RunOrder Order>
uint32_t Executor<Traits, Order>::fire_unit(uint32_t u, Cause cause) {
  auto& unit = units_->units[u];
  UnitSchedule& schedule = units_->schedule;
  Queue& queue = *unit.queue;
  const uint32_t most = unit.trigger_pkts != 0 ? unit.trigger_pkts : ctx_.batch_limit_pkts;
  const uint32_t n_pkts = std::min(queue.size_pkts, most);
  if (schedule.is_expired(u)) {
    note_release(queue, ctx_.now_ns - schedule.deadline_ns(u));
    schedule.unexpire(u);
  }
  if (unit.pace_ns != 0) {
    const uint64_t late_ns = ctx_.now_ns - std::min(ctx_.now_ns, unit.due_ns);
    unit.due_ns = ctx_.now_ns + unit.pace_ns - std::min(late_ns, unit.pace_ns);
  }
  unit.waits.note_size(queue.size_pkts, ctx_.now_ns);
  unit.waits.leave(n_pkts);
  firings_ = 0;
  prefetch_held(queue, n_pkts);
  fire_any(nodes_[queue.rank], n_pkts, 0, cause);
  keep_rest(queue, n_pkts);
  drain();
  stats_.worst_firings_per_run = std::max(stats_.worst_firings_per_run, firings_);
  refresh_unit(u);
  return n_pkts;
}

// Call after a change of queue, trigger or pace. Updates whether the unit is ready or congested,
// and when to check it again.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::refresh_unit(uint32_t u) {
  auto& unit = units_->units[u];
  Queue& queue = *unit.queue;
  units_->set_watermarks(unit, ctx_.batch_limit_pkts);
  queue.release_at_pkts =
      static_cast<uint16_t>(units_->threshold_pkts(unit, ctx_.now_ns, ctx_.batch_limit_pkts));
  unit.settled_pkts = queue.size_pkts;
  const bool is_ready = queue.size_pkts >= queue.release_at_pkts;
  if (queue.size_pkts == 0) units_->schedule.unexpire(u);
  if (is_ready || units_->schedule.is_expired(u)) {
    units_->schedule.activate(u);
  } else {
    units_->schedule.deactivate(u);
  }
  units_->update_congested(u, queue.size_pkts, ctx_.now_ns, ctx_.batch_limit_pkts);
  if (queue.size_pkts != 0) {
    next_release_ns_ = std::min(next_release_ns_, queue.entry_bound_ns + queue.age_limit_ns);
  }
  if (unit.pace_ns != 0 && unit.due_ns > ctx_.now_ns) {
    next_release_ns_ = std::min(next_release_ns_, unit.due_ns);
  }
}

// The unit has become ready; its queue may exceed its capacity, and then drops from its tail.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::unit_arrived(uint32_t u) {
  auto& unit = units_->units[u];
  Queue& queue = *unit.queue;
  const Backpressure how = units_->how.backpressure;
  if (units_->is_polling && unit.is_cut && how == Backpressure::kEarlyDrop) {
    drop_tail(queue, std::min(unit.settled_pkts, unit.queue_pkts), Traits::early_drop_reason());
  } else if (queue.size_pkts > unit.queue_pkts && how != Backpressure::kOn) {
    drop_tail(queue, unit.queue_pkts, Traits::queue_full_reason());
  }
  unit.counts.max_pkts = std::max(unit.counts.max_pkts, queue.size_pkts);
  if (queue.size_pkts > unit.high_pkts) {
    units_->update_congested(u, queue.size_pkts, ctx_.now_ns, ctx_.batch_limit_pkts);
  } else {
    unit.waits.note_size(queue.size_pkts, ctx_.now_ns);
  }
  if (queue.size_pkts >= queue.release_at_pkts) units_->schedule.activate(u);
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::drop_tail(Queue& queue, uint32_t kept_pkts, uint16_t reason) {
  Node& node = nodes_[queue.rank];
  const uint32_t n_dropped = queue.size_pkts - kept_pkts;
  for (uint32_t i = kept_pkts; i < queue.size_pkts; ++i) {
    Traits::free(ctx_, node, queue.pkts[i], reason);
  }
  stats_.dropped_pkts += n_dropped;
  node.dropped_pkts += n_dropped;
  node.drops[reason] += n_dropped;
  queue.size_pkts = kept_pkts;
  queue.seen_pkts = kept_pkts;
  if (kept_pkts == 0) queue.entry_bound_ns = kNeverNs;
}

// Within a turn, nodes between two units run as they become ready; units wait for their own turn.
template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::drain_followers() {
  while (!ready_.empty()) {
    const uint32_t rank = ready_.pop();
    if (const uint32_t u = units_->unit_of_rank[rank]; u != 0) {
      unit_arrived(u);
      continue;
    }
    run_ready<kInstrumented>(nodes_[rank]);
    read_clock_if_due();
  }
}

// Some deadline has passed: units that are really due become ready, whatever their trigger.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::wake_units() {
  next_release_ns_ = kNeverNs;
  for (uint32_t u = 1; u < units_->units.size(); ++u) {
    auto& unit = units_->units[u];
    Queue& queue = *unit.queue;
    if (unit.pace_ns != 0) refresh_unit(u);
    if (queue.size_pkts == 0 || units_->schedule.is_expired(u)) continue;
    if (queue.entry_bound_ns + queue.age_limit_ns <= ctx_.now_ns) {
      queue.entry_bound_ns = oldest_entry_ns(queue);
    }
    const uint64_t deadline_ns = queue.entry_bound_ns + queue.age_limit_ns;
    if (deadline_ns <= ctx_.now_ns) {
      units_->schedule.expire(u, deadline_ns);
      units_->schedule.activate(u);
    } else {
      next_release_ns_ = std::min(next_release_ns_, deadline_ns);
    }
  }
}

// With no input and nothing ready, fires the unit with the oldest packet. At the end of a task, if
// full queues are left, fires the last unit first, so that those upstream find room.
template <class Traits, RunOrder Order>
bool Executor<Traits, Order>::release_unit(uint32_t from_rank) {
  uint32_t chosen = 0;
  uint64_t oldest_ns = kNeverNs;
  bool is_ending = false;
  for (uint32_t u = 1; u < units_->units.size(); ++u) {
    const Queue& queue = *units_->units[u].queue;
    if (queue.size_pkts == 0 || queue.rank < from_rank) continue;
    is_ending |= units_->schedule.is_active(u);
    const uint64_t entry_ns = oldest_entry_ns(queue);
    if (!is_ending && chosen != 0 && entry_ns >= oldest_ns) continue;
    chosen = u;
    oldest_ns = entry_ns;
  }
  if (chosen == 0) return false;
  (void)fire_unit(chosen, Cause::kIdle);
  return true;
}

template <class Traits, RunOrder Order>
bool Executor<Traits, Order>::has_unit_room(uint32_t from_rank) {
  if (units_ == nullptr) return true;
  const auto is_full = [&](const auto& unit) {
    return unit.queue != nullptr && unit.queue->rank >= from_rank &&
           unit.queue->size_pkts + ctx_.batch_limit_pkts > unit.queue_pkts;
  };
  if (std::ranges::none_of(units_->units, is_full)) return true;
  release_unit(from_rank);
  return false;
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::set_unit_trigger(uint32_t u, uint32_t trigger_pkts) {
  auto& unit = units_->units[u];
  unit.trigger_pkts = trigger_pkts;
  unit.queue->trigger_pkts = static_cast<uint16_t>(std::max(trigger_pkts, 1U));
  unit.queue->is_untriggered = trigger_pkts == 0;
  refresh_unit(u);
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::set_pace(const Node& node, uint64_t pace_ns) {
  const uint32_t u = unit_of(node);
  if (u == 0) return;
  units_->units[u].pace_ns = pace_ns;
  units_->units[u].due_ns = ctx_.now_ns + pace_ns;
  refresh_unit(u);
}

}  // namespace batchplane::exec
