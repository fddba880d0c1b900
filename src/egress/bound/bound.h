// SPDX-License-Identifier: BSD-3-Clause
// bound.h - how long a packet waits at most in a scheduler, whatever other flows send, as long as its own
// flow sends no more than its share.
//
// A flow of share r that sends batches of q packets, L bytes each, no faster than r: the packet that came
// first has waited for the others, and leaves first. So the longest way of any of them, from when the first
// one came until it is released, is the fill of the batch and the bound below, whatever q is. Both are paid
// once. Where r is less than what the flow sends, its queue grows, and there is no bound.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "egress/discipline/discipline.h"
#include "egress/discipline/framing.h"

namespace batchplane::egress {

// Why a flow has none.
enum class NoBound : uint8_t {
  kHasOne,
  kNoRate,   // the link has no rate of its own: nobody knows how fast the port is
  kNoShare,  // others may take all, by what the discipline promises
};
// One line each. Empty for kHasOne.
inline const char* message_of(NoBound why) {
  if (why == NoBound::kNoRate) return "rate_bps is 0: say what the link carries";
  return why == NoBound::kNoShare ? "the discipline promises this flow no share" : "";
}

// All flows of a scheduler.
struct Crowd {
  uint64_t weight_sum = 0;
  uint64_t lmax_sum_bytes = 0;
  uint32_t lmax_bytes = 0;  // of the longest packet of any
  uint64_t limit_pkts = 0;  // that may wait, of all together
  // With `prio`, those that go first.
  uint32_t top_level = 0;
  uint64_t top_lmax_sum_bytes = 0;
  // With `qfq_plus`, that flows of one weight and lmax_bytes send at once.
  uint64_t most_at_once_bytes = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> flows_of_kind;

  void add(const FlowParams& flow);
};

// Of pairs (number, FlowParams), where so many packets may wait at most.
template <class Flows>
[[nodiscard]] Crowd crowd_of(const Flows& flows, uint64_t capacity_pkts) {
  Crowd crowd;
  for (const auto& [number, params] : flows) crowd.add(params);
  crowd.limit_pkts = std::min(crowd.limit_pkts, capacity_pkts);
  return crowd;
}

// What serves them.
struct Server {
  uint64_t rate_bps = 0;  // of the link
  Framing framing;
  double round_ns = 0;          // from one round of the arbiter to the next
  double read_interval_ns = 0;  // a mailbox is read at most so often
};

struct Bound {
  NoBound why_not = NoBound::kHasOne;
  double share_bps = 0;   // that the flow is sure to get, in bytes of packets; 0: none
  double own_ns = 0;      // a packet of its own, at that rate
  double others_ns = 0;   // what the discipline lets others do in between
  double arbiter_ns = 0;  // until the packet is seen, and until the free link is
  [[nodiscard]] bool has_one() const { return why_not == NoBound::kHasOne; }
  [[nodiscard]] double total_ns() const {
    if (!has_one()) return std::numeric_limits<double>::infinity();
    return own_ns + others_ns + arbiter_ns;
  }
};

// Whether so many packets wait that batches of the flow do not explain them: it sends more than its share.
[[nodiscard]] inline bool is_beyond_share(const Bound& bound, uint64_t backlog_pkts,
                                          uint32_t batch_pkts) {
  if (!bound.has_one() || bound.own_ns <= 0 || backlog_pkts <= batch_pkts) return false;
  return static_cast<double>(backlog_pkts - batch_pkts) * bound.own_ns > bound.total_ns();
}

// Of one flow of the crowd. `discipline` is one of kDisciplineNames.
[[nodiscard]] Bound bound_of(const std::string& discipline, const FlowParams& flow,
                             const Crowd& crowd, const Server& server);

// What a flow has to have: a share of what it sends, and a bound.
struct Need {
  uint32_t flow = 0;  // by index
  double sends_bps = 0;
  double allowed_ns = 0;
};
// The least weights with which all needs are met, of the flows that have any; others keep theirs. Empty: there
// are none.
[[nodiscard]] std::vector<uint32_t> least_weights(const std::string& discipline,
                                                  std::vector<FlowParams> flows,
                                                  const std::vector<Need>& needs,
                                                  const Server& server);

}  // namespace batchplane::egress
