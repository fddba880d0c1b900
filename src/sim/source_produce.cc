// SPDX-License-Identifier: BSD-3-Clause
// source_produce.cc - the packets that the generator puts into the ring, and when.
#include <algorithm>
#include <functional>

#include "sim/clock.h"
#include "sim/source.h"

namespace batchplane::sim {

void Source::rebuild_heap() {
  for (Stream& stream : streams_) stream.due.reset();
  heap_.clear();
  for (uint32_t i = 0; i < streams_.size(); ++i) heap_.push_back(i);
  for (size_t i = heap_.size(); i-- > 0;) sift_down(i);
  note_due();
}

void Source::sift_down(size_t i) {
  const auto is_before = [&](uint32_t a, uint32_t b) {
    const uint64_t due_a = streams_[a].arrivals.due_ns();
    const uint64_t due_b = streams_[b].arrivals.due_ns();
    return due_a != due_b ? due_a < due_b : a < b;
  };
  for (;;) {
    size_t least = i;
    for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap_.size(); ++child) {
      if (is_before(heap_[child], heap_[least])) least = child;
    }
    if (least == i) return;
    std::swap(heap_[i], heap_[least]);
    i = least;
  }
}

void Source::note_due() {
  if (!is_trace()) {
    due_ns_ = streams_[heap_.front()].arrivals.due_ns();
  } else {
    const bool is_over = trace_at_ == spec_.trace.time_ns.size();
    due_ns_ = is_over ? exec::kNeverNs : spec_.trace.time_ns[trace_at_];
  }
}

// The flow of the packet due next; advances the schedule by one packet.
uint32_t Source::take_flow(uint32_t& size_bytes) {
  if (is_trace()) {
    size_bytes = spec_.trace.size_bytes[trace_at_];
    const uint32_t flow = spec_.trace.flow[trace_at_++];
    note_due();
    return flow;
  }
  Stream& stream = streams_[heap_.front()];
  uint32_t flow = stream.train_flow;
  if (stream.train_left_pkts == 0) {
    stream.turns.each_next(1, [&](uint32_t, uint32_t turn) { flow = stream.first_flow + turn; });
    stream.train_flow = flow;
    stream.train_left_pkts = spec_.burst_pkts;
  }
  if (--stream.train_left_pkts == 0) {
    stream.arrivals.advance();
    stream.due.note_taken();
    if (heap_.size() != 1) sift_down(0);
    note_due();
  }
  size_bytes = spec_.flows[flow].size_bytes;
  return flow;
}

void Source::put(uint32_t flow, uint32_t size_bytes, uint64_t entry_ns, uint64_t since_ns) {
  Packet* const pkt = pool_.take();
  pkt->entry_ns = entry_ns;
  pkt->task_entry_ns = entry_ns;
  pkt->flow = first_flow_ + flow;
  pkt->size_bytes = size_bytes;
  pkt->path_state = 0;
  pkt->has_departure = false;
  pkt->trace_id = kUntraced;
  if (recorder_.wants_packets()) [[unlikely]]
    pkt->trace_id = recorder_.add_packet({first_flow_ + flow, entry_ns, 0, 0, false});
  ring_[(ring_head_ + n_ring_++) & ring_mask_] = {pkt, since_ns};
  counts_[flow].sent_pkts += 1;
  counts_[flow].sent_bytes += size_bytes;
}

void Source::start(uint64_t now_ns) {
  for (uint32_t i = 0; is_closed() && returns_.size() < spec_.window_pkts; ++i) {
    note_left(now_ns + static_cast<uint64_t>(i * 1e9 / std::max(1.0, spec_.rate_pps)));
  }
  for (Stream& stream : streams_) stream.arrivals.start(now_ns);
  rebuild_heap();
  is_started_ = true;
}

// Fills the ring with what the generator could put there until now_ns.
void Source::produce(uint64_t now_ns) {
  if (!spec_.is_on || left_pkts_ == 0) return;
  if (!is_started_) start(now_ns);
  if (stalls_.next_ns() <= now_ns) [[unlikely]]
    take_stalls(now_ns);
  // Room came only with the last poll.
  if (was_full_) ready_ticks_ = look_from(now_ns << kTicksPerNsLog2);
  was_full_ = false;
  if (is_closed()) return put_returned(now_ns);
  fill(now_ns);
}

void Source::note_left(uint64_t now_ns) {
  returns_.push_back(now_ns);
  std::ranges::push_heap(returns_, std::greater<>());
  if (woken_ != nullptr) woken_->add(reader_, now_ns);
}

void Source::put_returned(uint64_t now_ns) {
  while (left_pkts_ != 0 && !returns_.empty() && returns_.front() <= now_ns &&
         n_ring_ < spec_.ring_pkts) {
    const uint64_t since_ns = returns_.front();
    std::ranges::pop_heap(returns_, std::greater<>());
    returns_.pop_back();
    streams_.front().turns.each_next(1, [&](uint32_t, uint32_t turn) {
      const uint32_t flow = streams_.front().first_flow + turn;
      put(flow, spec_.flows[flow].size_bytes, since_ns, since_ns);
    });
    if (left_pkts_ != ~0ULL) --left_pkts_;
  }
}

// A stall delays the packets being made, or else the next look.
void Source::take_stalls(uint64_t now_ns) {
  while (stalls_.next_ns() <= now_ns) {
    const uint64_t begin_ns = stalls_.next_ns();
    if (!was_full_) fill(begin_ns);
    ready_ticks_ =
        std::max(ready_ticks_, begin_ns << kTicksPerNsLog2) + (stalls_.take() << kTicksPerNsLog2);
  }
}

void Source::fill(uint64_t now_ns) {
  while (left_pkts_ != 0) {
    const uint64_t due = is_endless() ? 0 : due_ns_;
    if (due > now_ns) return;
    const uint64_t look_ticks = look_from(due << kTicksPerNsLog2);
    if (n_ring_ == spec_.ring_pkts && !(spec_.drops_when_full && !is_endless())) {
      was_full_ = true;
      return;
    }
    if (look_ticks >> kTicksPerNsLog2 > now_ns) return;
    if (is_endless()) {
      put_at_once(look_ticks, now_ns);
    } else {
      put_burst(look_ticks);
    }
  }
}

// The first look at schedule and ring not before `ticks`.
uint64_t Source::look_from(uint64_t ticks) const {
  if (ready_ticks_ >= ticks) return ready_ticks_;
  if (look_ticks_ == 0) return ticks;
  return ready_ticks_ + (ticks - ready_ticks_ + look_ticks_ - 1) / look_ticks_ * look_ticks_;
}

// As many packets as there is room for or, from a generator that looks all the time, as are made
// until now_ns.
void Source::put_at_once(uint64_t look_ticks, uint64_t now_ns) {
  uint64_t most = std::min<uint64_t>(left_pkts_, spec_.ring_pkts - n_ring_);
  const bool is_together = look_ticks_ != 0;
  if (is_together) {
    most = std::min<uint64_t>(most, exec::kGeneratorBurstPkts);
  } else if (pkt_ticks_ != 0) {
    const uint64_t end_ticks = (now_ns + 1) << kTicksPerNsLog2;
    most = std::min(most, (end_ticks - look_ticks + pkt_ticks_ - 1) / pkt_ticks_);
  }
  const auto n = static_cast<uint32_t>(most);
  ready_ticks_ = look_ticks + burst_ticks_ + n * pkt_ticks_;
  if (left_pkts_ != ~0ULL) left_pkts_ -= n;
  const auto put_one = [&](uint32_t i, uint32_t flow, uint32_t size_bytes) {
    const uint64_t entry_ticks = is_together ? look_ticks : look_ticks + i * pkt_ticks_;
    const uint64_t since_ticks = is_together ? ready_ticks_ + store_ticks_ : entry_ticks;
    put(flow, size_bytes, entry_ticks >> kTicksPerNsLog2, since_ticks >> kTicksPerNsLog2);
  };
  if (keeps_order()) {
    // A trace that has ended starts again.
    for (uint32_t i = 0; i < n; ++i) {
      uint32_t size_bytes = 0;
      const uint32_t flow = take_flow(size_bytes);
      if (is_trace() && trace_at_ == spec_.trace.time_ns.size()) trace_at_ = 0;
      put_one(i, flow, size_bytes);
    }
    return;
  }
  Stream& stream = streams_.front();
  stream.turns.each_next(n, [&](uint32_t i, uint32_t turn) {
    const uint32_t flow = stream.first_flow + turn;
    put_one(i, flow, spec_.flows[flow].size_bytes);
  });
}

// Packets that one look finds due; they enter the ring together, when the last one is made. A
// generator that looks all the time puts each packet in by itself.
void Source::put_burst(uint64_t look_ticks) {
  const uint64_t look_ns = look_ticks >> kTicksPerNsLog2;
  const uint32_t most = look_ticks_ == 0 ? 1 : exec::kGeneratorBurstPkts;
  uint32_t n = 0;
  while (n < most && left_pkts_ != 0) {
    const uint64_t due = due_ns_;
    if (due > look_ns) break;
    const bool is_late = spec_.max_late_ns != 0 && look_ns - due > spec_.max_late_ns;
    const bool is_full = n_ring_ == spec_.ring_pkts;
    if (is_full && !is_late && !spec_.drops_when_full) break;
    uint32_t size_bytes = 0;
    const uint32_t flow = take_flow(size_bytes);
    if (is_full || is_late) {
      refuse(flow);
      continue;
    }
    if (left_pkts_ != ~0ULL) --left_pkts_;
    put(flow, size_bytes, due, look_ns);
    ++n;
  }
  ready_ticks_ = look_ticks + (n == 0 ? 0 : burst_ticks_) + n * pkt_ticks_;
  if (look_ticks_ == 0) return;
  const uint64_t since_ns = (ready_ticks_ + store_ticks_) >> kTicksPerNsLog2;
  for (uint32_t i = n_ring_ - n; i < n_ring_; ++i) {
    ring_[(ring_head_ + i) & ring_mask_].since_ns = since_ns;
  }
}

}  // namespace batchplane::sim
