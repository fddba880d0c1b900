// SPDX-License-Identifier: BSD-3-Clause
// source_poll.cc - takes packets from the ring for a poll, finds when the next poll will find any,
// and counts the demand.
#include <algorithm>

#include "sim/clock.h"
#include "sim/source.h"

namespace batchplane::sim {

// Packets of this poll, of a source that brings less than a full poll; fractions of a packet are
// kept for later.
uint32_t Source::take_share(uint32_t most) {
  credit_pkts_ += part_of_poll_ * most;
  const auto n = std::min(most, static_cast<uint32_t>(credit_pkts_));
  credit_pkts_ -= n;
  return n;
}

uint32_t Source::poll(Packet** pkts, uint32_t most, uint64_t now_ns) {
  produce(now_ns);
  if (part_of_poll_ != 0) [[unlikely]]
    most = take_share(most);
  const uint32_t polls = n_seen_ < most ? 1 : fill_.due();
  if (polls != 0) {
    look(now_ns);
    fill_.look(n_seen_, polls);
  }
  uint32_t n = 0;
  while (n < most && n < n_seen_) {
    Packet* const pkt = ring_[ring_head_].pkt;
    pkts[n++] = pkt;
    ring_head_ = (ring_head_ + 1) & ring_mask_;
    --n_ring_;
    if (pkt->trace_id != kUntraced) [[unlikely]]
      recorder_.packets[pkt->trace_id].poll_ns = now_ns;
  }
  n_seen_ -= n;
  // The engine's port then peeks at the next packets.
  if (n_seen_ < most) look(now_ns);
  return n;
}

void Source::look(uint64_t now_ns) {
  while (n_seen_ < n_ring_ && ring_[(ring_head_ + n_seen_) & ring_mask_].since_ns <= now_ns) {
    ++n_seen_;
  }
}

// Packets that the schedule has due and that are not in the ring yet.
uint64_t Source::due_pkts(uint64_t now_ns) {
  if (!spec_.is_on || is_endless() || !is_started_ || left_pkts_ == 0) return 0;
  uint64_t pkts = 0;
  if (is_trace()) {
    const auto begin = spec_.trace.time_ns.begin() + static_cast<std::ptrdiff_t>(trace_at_);
    pkts =
        static_cast<uint64_t>(std::upper_bound(begin, spec_.trace.time_ns.end(), now_ns) - begin);
  }
  for (Stream& stream : streams_) {
    if (is_trace()) break;
    stream.due.look(stream.arrivals, now_ns);
    const uint64_t arrivals = stream.due.due();
    if (arrivals == 0) continue;
    pkts += arrivals * spec_.burst_pkts;
    if (stream.train_left_pkts != 0) pkts -= spec_.burst_pkts - stream.train_left_pkts;
  }
  return std::min(pkts, left_pkts_);
}

// The schedule advances only when the worker polls; a generator would have put packets that fit
// into the ring by now.
exec::InputCounts Source::demand(uint64_t taken_pkts, uint64_t now_ns) {
  uint64_t lost_pkts = 0;
  for (const TrafficFlowCounts& flow : counts_) lost_pkts += flow.refused_pkts;
  if (spec_.is_inline) return {taken_pkts, {}, {lost_pkts, 0}};
  const uint64_t due = due_pkts(now_ns);
  const uint64_t fits = std::min<uint64_t>(due, spec_.ring_pkts - n_ring_);
  return {taken_pkts, {n_ring_ + fits, spec_.ring_pkts, fill_}, {lost_pkts, due - fits}};
}

// Puts packets that waited for room into the ring.
void Source::note_room(uint64_t now_ns) {
  if (was_full_ && !spec_.is_inline) produce(now_ns);
}

uint64_t Source::next_ns() {
  if (n_ring_ != 0) {
    // Recorded packets are numbered as they are produced, which every poll does.
    return recorder_.wants_packets() ? 0 : ring_[ring_head_].since_ns;
  }
  if (!spec_.is_on || left_pkts_ == 0) return exec::kNeverNs;
  if (!is_started_) return 0;
  if (is_closed()) return returns_.empty() ? exec::kNeverNs : returns_.front();
  const uint64_t due = is_endless() ? 0 : due_ns_;
  if (due == exec::kNeverNs) return due;
  return (look_from(due << kTicksPerNsLog2) + kTicksPerNs - 1) >> kTicksPerNsLog2;
}

}  // namespace batchplane::sim
