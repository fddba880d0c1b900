// SPDX-License-Identifier: BSD-3-Clause
// discipline.h - the concept of a packet scheduler: takes packets of weighted flows and returns the
// next packet to send.
//
// A discipline has one owner (the arbiter), reads no clock and does no I/O. It allocates only when
// made: flows are added, changed and removed while packets pass.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "egress/discipline/descriptor.h"

namespace batchplane::egress {

inline constexpr uint32_t kMaxWeight = 65'536;
// Virtual time advances by 2^40 / sum per byte, which is exact to 0.02 % up to this sum.
inline constexpr uint64_t kMaxWeightSum = 1ULL << 28;
// Shorter packets are scheduled as they are, but a flow's longest packet is assumed to have at
// least this size.
inline constexpr uint32_t kMinLmaxBytes = 64;
// An Ethernet frame without its checksum.
inline constexpr uint32_t kShortestPktBytes = 60;

struct FlowParams {
  uint32_t weight = 1;             // share of the link; with `prio` the level, highest first
  uint32_t lmax_bytes = 1518;      // its longest packet
  uint32_t limit_pkts = 1U << 30;  // limit of its queue
  uint32_t delay_us = 0;           // with `calendar`: delay from arrival to departure,
  uint32_t jitter_us = 0;          // plus a random time up to this,
  uint64_t pace_bps = 0;           // at no more than this rate; 0: not paced

  bool operator==(const FlowParams&) const = default;
};

// kShed: accepted, but dropped by its queue later, to keep delays short or make room for others.
// kPushedOut: accepted; a packet of a longer queue was dropped for it, because the shared store was
// full.
enum class Enqueued : uint8_t { kYes, kFull, kTooLong, kNoFlow, kShed, kPushedOut };
inline constexpr size_t kEnqueued = 6;
inline bool is_in(Enqueued done) { return done == Enqueued::kYes || done == Enqueued::kPushedOut; }
enum class Configured : uint8_t { kYes, kBadFlow, kBadWeight, kBadLmax, kWeightSum };

// One line each: the mistake and its fix. Empty for kYes.
inline const char* message_of(Configured configured) {
  switch (configured) {
    case Configured::kYes:
      return "";
    case Configured::kBadFlow:
      return "flow number beyond the capacity";
    case Configured::kBadWeight:
      return "the weight must be 1 to 65536";
    case Configured::kBadLmax:
      return "lmax_bytes must be 1 to 65535";
    case Configured::kWeightSum:
      return "the weights add up to more than 268435456: scale them down";
  }
  return "";
}

[[nodiscard]] inline Configured check_range(const FlowParams& params) {
  if (params.weight == 0 || params.weight > kMaxWeight) return Configured::kBadWeight;
  const bool has_good_lmax = params.lmax_bytes != 0 && params.lmax_bytes <= kMaxPktBytes;
  return has_good_lmax ? Configured::kYes : Configured::kBadLmax;
}

// Receives the packets of a flow that is removed.
using TakeDescriptor = std::function<void(const Descriptor&)>;

struct Capacity {
  uint32_t flows = 0;  // numbers 0..flows-1
  uint32_t pkts = 0;   // of all flows together
  bool operator==(const Capacity&) const = default;
};

// The operations that an arbiter needs.
template <class D>
concept PacketOrder =
    requires(D d, const D c, uint32_t flow, const Descriptor& pkt, Descriptor& out) {
      { d.prefetch(flow) } noexcept;
      // The caller keeps the packet unless kYes; with kPushedOut it gets pushed_out() instead.
      { d.enqueue(pkt) } noexcept -> std::same_as<Enqueued>;
      { d.dequeue(out) } noexcept -> std::same_as<bool>;
      { c.backlog_pkts() } noexcept -> std::same_as<uint32_t>;
      { c.backlog_pkts(flow) } noexcept -> std::same_as<uint32_t>;
    };

template <class D>
concept Discipline =
    PacketOrder<D> && std::constructible_from<D, Capacity> &&
    requires(D d, uint32_t flow, const FlowParams& params, const TakeDescriptor& take) {
      // Adds or changes a flow, even while it is backlogged or in service.
      { d.configure(flow, params) } -> std::same_as<Configured>;
      // Passes on its packets, oldest first, and forgets the flow.
      { d.remove(flow, take) };
    };

// A non-work-conserving order: packets may wait although the link is free. It must know the time,
// and drain() also releases packets that it holds back.
template <class D>
concept TimedOrder =
    PacketOrder<D> && requires(D d, uint64_t now_ns, uint32_t flow, Descriptor& out) {
      { d.advance(now_ns) } noexcept;
      { d.prefetch_path(flow) } noexcept;
      { d.drain(out) } noexcept -> std::same_as<bool>;
    };

}  // namespace batchplane::egress
