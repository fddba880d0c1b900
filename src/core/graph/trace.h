// SPDX-License-Identifier: BSD-3-Clause
// trace.h - follows sampled packets through the graph: path, waits in buffers, and how they ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/packet/packet.h"

namespace batchplane {

enum class TraceEventKind : uint8_t { kRun, kHold, kGate, kDrop, kEnd };
inline constexpr const char* kTraceEventNames[] = {"run", "hold", "gate", "drop", "end"};

struct TraceEvent {
  uint64_t at_ns;
  uint16_t rank;  // node within the worker's task
  uint16_t task;
  uint16_t detail;  // gate or drop reason
  uint16_t batch_pkts;
  uint8_t trace_id;
  TraceEventKind kind;
};

// One worker's part of a trace session: made by the control thread, filled by the worker, read after
// `is_done` or after the worker has let go of it. The worker neither allocates nor locks.
class Tracer {
 public:
  static constexpr uint32_t kMaxPkts =
      127;  // ids of one session differ from the last one's in the top bit
  static constexpr uint32_t kEventsPerPkt = 256;
  static constexpr uint32_t kSnapBytes = 128;

  struct Captured {
    uint64_t at_ns;
    uint32_t len_bytes;
    uint32_t snap_bytes;
    uint8_t bytes[kSnapBytes];
  };

  // `accepts` gets the first bytes of a packet and its length; empty = all. It runs on the worker. Trace ids
  // are first_id..first_id + n_pkts - 1; `ended` counts over all workers of a session; `queues` are the
  // modules behind which another task continues. The tracer tags n_pkts packets and has room for the events
  // of n_session_pkts.
  Tracer(uint8_t first_id, uint32_t n_pkts, uint32_t n_session_pkts,
         std::function<bool(const uint8_t*, uint32_t)> accepts, std::vector<const void*> queues,
         std::atomic<uint32_t>& ended);

  // Worker: tags the packets of an input batch that the filter accepts.
  void tag(Packet* const* pkts, uint32_t n, uint64_t now_ns) noexcept;
  void note(const TraceEvent& event) noexcept {
    if (n_events_ < events_.size()) events_[n_events_++] = event;
    if (event.kind == TraceEventKind::kEnd) ended_->fetch_add(1, std::memory_order_release);
  }
  // A terminal's packet was recorded as ended before the terminal ran: a drop replaces that event. A packet
  // that goes to a drop gate has not ended.
  void note_drop(const TraceEvent& event, bool is_end) noexcept;
  [[nodiscard]] bool goes_on_behind(const void* module) const noexcept;

  // Whether a packet's id is of this session; packets tagged in an earlier session may still be held.
  [[nodiscard]] bool knows(uint8_t id) const { return ((id ^ first_id_) & 0x80) == 0; }

  // Control thread, after the workers have let go.
  [[nodiscard]] uint8_t first_id() const { return first_id_; }
  [[nodiscard]] const std::vector<Captured>& packets() const { return packets_; }
  [[nodiscard]] std::vector<TraceEvent> events() const {
    return {events_.begin(), events_.begin() + n_events_};
  }

 private:
  std::function<bool(const uint8_t*, uint32_t)> accepts_;
  std::vector<const void*> queues_;
  std::vector<Captured> packets_;  // fixed capacity: n_pkts
  std::vector<TraceEvent> events_;
  uint32_t n_events_ = 0;
  std::atomic<uint32_t>* ended_;
  uint8_t first_id_;
};

}  // namespace batchplane
