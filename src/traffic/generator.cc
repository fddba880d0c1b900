// SPDX-License-Identifier: BSD-3-Clause
// generator.cc - the generator's burst step: writes due packets and enqueues them.
#include "traffic/generator.h"

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "core/engine/thread.h"

namespace batchplane::traffic {
namespace {

// Maximum number of drops per step; the rest stay due for the next.
constexpr uint32_t kMaxRefusals = 4096;
// Maximum number of arrivals to look ahead per step when counting waiting ones; the next step counts on.
constexpr uint32_t kMaxLooks = 4096;
// Bursts after which the thread yields its core even if it always has work.
constexpr uint32_t kBurstsPerYield = 32;
// A burst takes about a microsecond; time that a yield takes beyond this threshold went to another program. A
// ring of 64 packets is empty soon after, and an idle worker then begins to release held packets.
constexpr uint64_t kHeldUpNs = 2'000;

void bump(std::atomic<uint64_t>& counter, uint64_t n) {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace

Generator::~Generator() {
  if (n_hand_ != 0) PacketPool::free_bulk(hand_, n_hand_);
}

void Generator::run(const std::atomic<bool>& must_stop) {
  [[maybe_unused]] const PacketThread registered;
  const TscClock& clock = TscClock::instance();
  uint32_t bursts = 0;
  uint64_t last_ns = clock.now_ns();
  while (!must_stop.load(std::memory_order_acquire)) {
    const uint64_t now_ns = clock.now_ns();
    if (now_ns - last_ns > kHeldUpNs) [[unlikely]] {
      bump(held_ups_, 1);
      bump(held_up_ns_, now_ns - last_ns);
    }
    last_ns = now_ns;
    const uint32_t sent = run_burst(now_ns);
    if (sent == 0 || ++bursts % kBurstsPerYield == 0) std::this_thread::yield();
  }
  // Returns preallocated packets while this thread is still registered with the pool.
  if (n_hand_ != 0) PacketPool::free_bulk(hand_, n_hand_);
  n_hand_ = 0;
}

uint32_t Generator::run_burst(uint64_t now_ns) noexcept {
  take_changes(now_ns);
  const bool is_saturating = is_saturating_.load(std::memory_order_relaxed);
  if (!is_on_.load(std::memory_order_relaxed) || left_pkts_ == 0) {
    is_started_ = false;
    late_ns_.store(0, std::memory_order_relaxed);
    forget_backlog();
    return 0;
  }
  if (!is_started_ && !is_saturating) {
    for (const auto& stream : streams_) stream->arrivals.start(now_ns);
  }
  if (is_saturating && is_started_) forget_backlog();
  is_started_ = !is_saturating;  // after a saturating phase a new schedule begins
  if (!is_saturating && next_stream().arrivals.due_ns() > now_ns) {
    late_ns_.store(0, std::memory_order_relaxed);
    told_.backlog_pkts.store(0, std::memory_order_relaxed);
    return 0;
  }
  auto room =
      static_cast<uint32_t>(std::min<uint64_t>({kBurstPkts, ring_.free_slots(), left_pkts_}));
  if (room > 0 && !refill_hand()) {
    bump(starved_polls_, 1);
    room = std::min(room, n_hand_);
  }
  BurstSlot slots[kBurstPkts];
  const uint32_t n =
      is_saturating ? fill_saturating(slots, room, now_ns) : fill_due(slots, room, now_ns);
  ring_.enqueue(slots, n);
  if (left_pkts_ != ~0ULL) left_pkts_ -= n;
  if (!is_saturating) {
    if (max_late_ns_ != 0) refuse_late(now_ns);
    note_backlog(now_ns, n < kBurstPkts);
    const uint64_t due_ns = next_stream().arrivals.due_ns();
    late_ns_.store(now_ns - std::min(due_ns, now_ns), std::memory_order_relaxed);
  }
  return n;
}

uint32_t Generator::fill_saturating(BurstSlot* slots, uint32_t room, uint64_t now_ns) {
  Stream& stream = *streams_.front();
  stream.frames.each_next(room, [&](uint32_t i, const TemplateSet::Frame& frame) {
    slots[i] = write_packet(frame, stream.first_flow + frame.flow, now_ns);
  });
  return room;
}

uint32_t Generator::fill_due(BurstSlot* slots, uint32_t room, uint64_t now_ns) {
  uint32_t n = 0;
  while (n < room) {
    Stream& stream = next_stream();
    const uint64_t due_ns = stream.arrivals.due_ns();
    if (due_ns > now_ns) break;
    const TemplateSet::Frame& frame = take_frame(stream);
    slots[n++] = write_packet(frame, stream.first_flow + frame.flow, due_ns);
  }
  return n;
}

void Generator::refuse_late(uint64_t now_ns) {
  for (uint32_t i = 0; i < kMaxRefusals; ++i) {
    Stream& stream = next_stream();
    const uint64_t due_ns = stream.arrivals.due_ns();
    if (due_ns > now_ns || now_ns - due_ns <= max_late_ns_) return;
    const TemplateSet::Frame& frame = take_frame(stream);
    bump(counts_[stream.first_flow + frame.flow].refused_pkts, 1);
    bump(told_.lost_pkts, 1);
  }
}

// If a short burst leaves packets due, the ring was full. After a full burst the rest follows at once.
void Generator::note_backlog(uint64_t now_ns, bool was_short) {
  uint64_t pkts = 0;
  for (const auto& stream : streams_) {
    if (was_short && stream->arrivals.due_ns() <= now_ns) {
      stream->due.look(stream->arrivals, now_ns, kMaxLooks);
    }
    const uint64_t arrivals = stream->due.due();
    if (arrivals == 0) continue;
    pkts += arrivals * train_pkts_;
    if (stream->train_left_pkts != 0) pkts -= train_pkts_ - stream->train_left_pkts;
  }
  told_.backlog_pkts.store(std::min(pkts, left_pkts_), std::memory_order_relaxed);
}

void Generator::forget_backlog() {
  for (const auto& stream : streams_) stream->due.reset();
  told_.backlog_pkts.store(0, std::memory_order_relaxed);
}

Generator::Stream& Generator::next_stream() {
  Stream* first = streams_.front().get();
  for (const auto& stream : streams_) {
    if (stream->arrivals.due_ns() < first->arrivals.due_ns()) first = stream.get();
  }
  return *first;
}

const TemplateSet::Frame& Generator::take_frame(Stream& stream) {
  if (stream.train_left_pkts == 0) {
    stream.frames.each_next(
        1, [&](uint32_t, const TemplateSet::Frame& frame) { stream.train = &frame; });
    stream.train_left_pkts = train_pkts_;
  }
  if (--stream.train_left_pkts == 0) {
    stream.arrivals.advance();
    stream.due.note_taken();
  }
  return *stream.train;
}

BurstSlot Generator::write_packet(const TemplateSet::Frame& frame, uint32_t flow, uint64_t due_ns) {
  Packet* const pkt = hand_[--n_hand_];
  if constexpr (!BATCHPLANE_DPDK) pkt->reset(frame.len_bytes);  // opens the bytes to the sanitizer
  copy_frame(fresh_data(*pkt), frame.bytes, frame.len_bytes);
  offer_line(fresh_data(*pkt));
  bump(counts_[flow].sent_pkts, 1);
  bump(counts_[flow].sent_bytes, frame.len_bytes);
  return BurstSlot::make(pkt, frame.len_bytes, due_ns);
}

// New packets go below the present ones, whose lines have been in transit for longer.
bool Generator::refill_hand() {
  if (n_hand_ >= kBurstPkts) return true;
  Packet* fresh[kBurstPkts];
  if (!pool_.alloc_bulk(fresh, kBurstPkts)) return false;
  std::copy_backward(hand_, hand_ + n_hand_, hand_ + n_hand_ + kBurstPkts);
  std::copy(fresh, fresh + kBurstPkts, hand_);
  n_hand_ += kBurstPkts;
#if BATCHPLANE_DPDK
  for (Packet* pkt : fresh) prefetch_for_write(fresh_data(*pkt));
#endif
  return true;
}

void Generator::take_changes(uint64_t now_ns) {
  const uint32_t change = change_.load(std::memory_order_acquire);
  if (change == seen_change_) [[likely]]
    return;
  seen_change_ = change;
  for (const auto& stream : streams_) {
    const double per_s = stream->rate_pps.load(std::memory_order_relaxed) / train_pkts_;
    stream->arrivals.set_rate(per_s, now_ns);
    stream->due.reset();
  }
  const std::lock_guard lock(weights_mutex_);
  if (are_weights_new_) streams_.front()->frames.set_weights(weights_);
  are_weights_new_ = false;
}

}  // namespace batchplane::traffic
