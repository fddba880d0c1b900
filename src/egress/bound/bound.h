// SPDX-License-Identifier: BSD-3-Clause
// bound.h - the longest wait of a packet in a scheduler, whatever other flows send, provided that
// its own flow stays within its share.
//
// Take a flow of share r that sends batches of q packets of L bytes, no faster than r. The first
// packet of a batch waits for the others to arrive, and leaves first. So for any packet of the
// batch, the longest time from the first arrival to its release is the fill time of the batch plus
// the bound below, whatever q is; each is paid once. If the flow sends more than r, its queue
// grows, and there is no bound.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "egress/discipline/discipline.h"
#include "egress/discipline/framing.h"

namespace batchplane::egress {

// Why a flow has no bound.
enum class NoBound : uint8_t {
  kHasOne,
  kNoRate,   // the link has no configured rate, so the port's speed is unknown
  kNoShare,  // the discipline allows other flows to take everything
  // In a tree:
  kNoMinimum,   // siblings may go first
  kLateMinima,  // others' minima may take everything for as long as is caught up on
  kShortBurst,
  kOwnOrder,  // the flow's own packets overtake each other
};
// One line each. Empty for kHasOne.
inline const char* message_of(NoBound why) {
  constexpr std::array<const char*, 7> kMessages{
      "",
      "rate_bps is 0: say what the link carries",
      "the discipline promises this flow no share",
      "siblings may go first: give it a minimum rate, or a priority of its own above all others",
      "minimum rates of others may go first for too long: lower them or catch_up_us",
      "a ceiling on its way is too strict with bursts: raise burst_bytes",
      "its connections have queues of their own (fq_codel) and overtake each other"};
  return kMessages[static_cast<size_t>(why)];
}

// All flows of a scheduler.
struct Crowd {
  uint64_t weight_sum = 0;
  uint64_t lmax_sum_bytes = 0;
  uint32_t lmax_bytes = 0;  // longest packet of any flow
  uint64_t limit_pkts = 0;  // most packets that may wait, all flows together
  // For `prio`: the flows of the top level.
  uint32_t top_level = 0;
  uint64_t top_lmax_sum_bytes = 0;
  // For `qfq_plus`: bytes that flows of equal weight and lmax_bytes may send in a row.
  uint64_t most_at_once_bytes = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> flows_of_kind;

  void add(const FlowParams& flow);
};

// From pairs (number, FlowParams); at most capacity_pkts packets may wait.
template <class Flows>
[[nodiscard]] Crowd crowd_of(const Flows& flows, uint64_t capacity_pkts) {
  Crowd crowd;
  for (const auto& [number, params] : flows) crowd.add(params);
  crowd.limit_pkts = std::min(crowd.limit_pkts, capacity_pkts);
  return crowd;
}

// What serves the flows.
struct Server {
  uint64_t rate_bps = 0;  // of the link
  Framing framing;
  double round_ns = 0;          // between rounds of the arbiter
  double read_interval_ns = 0;  // minimum time between reads of a mailbox
};

// Disciplines divide bytes of packets, but the link carries framing as well: the most per byte.
[[nodiscard]] double wire_stretch(const Framing& framing, uint32_t lmax_bytes);

struct Bound {
  NoBound why_not = NoBound::kHasOne;
  double share_bps = 0;   // guaranteed to the flow, in packet bytes; 0: none
  double own_ns = 0;      // time of one own packet at that rate
  double others_ns = 0;   // time that the discipline gives to others first
  double arbiter_ns = 0;  // until the packet, and the free link, is noticed
  [[nodiscard]] bool has_one() const { return why_not == NoBound::kHasOne; }
  [[nodiscard]] double total_ns() const {
    if (!has_one()) return std::numeric_limits<double>::infinity();
    return own_ns + others_ns + arbiter_ns;
  }
};

// Whether more packets wait than the flow's batches explain: then it sends more than its share.
[[nodiscard]] inline bool is_beyond_share(const Bound& bound, uint64_t backlog_pkts,
                                          uint32_t batch_pkts) {
  if (!bound.has_one() || bound.own_ns <= 0 || backlog_pkts <= batch_pkts) return false;
  return static_cast<double>(backlog_pkts - batch_pkts) * bound.own_ns > bound.total_ns();
}

// For one flow of the crowd. `discipline` is one of kDisciplineNames.
[[nodiscard]] Bound bound_of(const std::string& discipline, const FlowParams& flow,
                             const Crowd& crowd, const Server& server);

// What a flow needs: a share that covers its sending rate, and a bound within the allowed delay.
struct Need {
  uint32_t flow = 0;  // by index
  double sends_bps = 0;
  double allowed_ns = 0;
};
// The smallest weights that meet all needs, for the flows that have any; others keep theirs. Empty
// if there are none.
[[nodiscard]] std::vector<uint32_t> least_weights(const std::string& discipline,
                                                  std::vector<FlowParams> flows,
                                                  const std::vector<Need>& needs,
                                                  const Server& server);

}  // namespace batchplane::egress
