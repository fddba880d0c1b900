// SPDX-License-Identifier: BSD-3-Clause
#include "egress/bound/tree_bound.h"

#include <algorithm>
#include <array>
#include <limits>

#include "egress/discipline/flow_set.h"

namespace batchplane::egress {
namespace {

constexpr double kForeverNs = std::numeric_limits<double>::infinity();
constexpr double kNsOfByteAt1Bps = 8e9;

double bytes_per_ns(double rate_bps) { return rate_bps / kNsOfByteAt1Bps; }

// What nodes may send while green in a time t: rate t + min_sum C, and L for each minimum. Of nested
// minima the rate has the larger.
struct Green {
  double rate = 0;
  double min_sum = 0;
  double n_minima = 0;
  double n_children = 0;  // that may be green

  void add(const Green& other, double sign) {
    rate += sign * other.rate;
    min_sum += sign * other.min_sum;
    n_minima += sign * other.n_minima;
    n_children += sign * other.n_children;
  }
};

struct BoundNode {
  uint32_t parent = kNone;
  bool is_first = true;        // of all its siblings, whenever both have packets and none is green
  bool has_good_burst = true;  // of the ceilings of it and those above
  uint8_t priority = 0;
  LeafQueue queue = LeafQueue::kFifo;
  double min = 0;  // bytes a ns
  double ceil = kForeverNs;
  double burst_ns = 0;
  double slowest = 0;  // the link, its ceiling and those above, bytes a ns
  // L / c of the ceilings: the longest; of those above, with the link; and what the last packets
  // below each may cost.
  double debt_ns = 0;
  double above_ns = 0;
  double last_ns = 0;
  Green green;  // it and all below
};

struct BoundChildren {
  std::array<Green, kPriorities> green;
  std::array<uint32_t, kPriorities> n{};
};

// Time until a path is served: T = fixed + turn + busy T.
struct PathWait {
  double fixed_ns = 0;
  double turn_ns = 0;
  double busy = 0;
  [[nodiscard]] double total_ns() const {
    return busy < 1 ? (fixed_ns + turn_ns) / (1 - busy) : kForeverNs;
  }
};

enum class GreenOrder : uint8_t { kTurns, kCredit, kAnyPriority };

// A leaf within its ceiling is never skipped for it if it waits for less than the burst lasts.
bool is_in_burst(const BoundNode& leaf, double ns) {
  return leaf.ceil == kForeverNs || ns <= leaf.burst_ns;
}

class TreeBounds {
 public:
  TreeBounds(const TreeCapacity& capacity, const std::vector<PlacedNode>& nodes,
             const Server& server);
  [[nodiscard]] Bound bound_of(uint32_t leaf) const;

 private:
  [[nodiscard]] uint32_t root() const { return capacity_.root(); }
  [[nodiscard]] BoundChildren& children(uint32_t inner) { return children_[inner - root()]; }
  [[nodiscard]] const BoundChildren& children(uint32_t inner) const {
    return children_[inner - root()];
  }
  void place(const PlacedNode& from);
  void add_green(uint32_t at);
  [[nodiscard]] double longest_busy_ns(const std::vector<PlacedNode>& nodes) const;
  [[nodiscard]] double longest_lag_ns(const std::vector<PlacedNode>& nodes) const;
  [[nodiscard]] PathWait wait_of(uint32_t at, GreenOrder order, double lag_ns,
                                 double* lagging) const;
  [[nodiscard]] double steady_wait_ns(uint32_t at, double sends) const;
  [[nodiscard]] Bound guaranteed(uint32_t leaf, uint32_t by) const;
  [[nodiscard]] Bound first_of_all(uint32_t leaf) const;
  [[nodiscard]] Bound made(double share, double own_ns, double others_ns) const;

  const TreeCapacity& capacity_;
  const Server& server_;
  double link_;  // bytes a ns
  double stretch_;
  double longest_;
  double shortest_;
  double busy_ns_ = kForeverNs;
  double lag_ns_ = 0;  // C
  std::vector<BoundNode> nodes_;
  std::vector<BoundChildren> children_;
};

TreeBounds::TreeBounds(const TreeCapacity& capacity, const std::vector<PlacedNode>& nodes,
                       const Server& server)
    : capacity_(capacity),
      server_(server),
      link_(bytes_per_ns(static_cast<double>(server.rate_bps))),
      stretch_(wire_stretch(capacity.framing, capacity.lmax_bytes)),
      longest_(capacity.framing.wire_bytes(capacity.lmax_bytes)),
      shortest_(capacity.framing.wire_bytes(std::min(kShortestPktBytes, capacity.lmax_bytes))),
      nodes_(capacity.nodes()),
      children_(capacity.inner_nodes) {
  BoundNode& link = nodes_[root()];
  link.slowest = link_;
  link.above_ns = longest_ / link_;
  for (const PlacedNode& node : nodes) place(node);
  for (size_t i = nodes.size(); i-- > 0;) add_green(nodes[i].number);
  busy_ns_ = longest_busy_ns(nodes);
  lag_ns_ = std::min(longest_lag_ns(nodes), static_cast<double>(capacity.catch_up_ns));
}

void TreeBounds::place(const PlacedNode& from) {
  const BoundNode& above = nodes_[from.parent];
  const NodeParams& params = from.params;
  BoundNode node{.parent = from.parent,
                 .has_good_burst = above.has_good_burst,
                 .priority = params.priority,
                 .queue = params.queue,
                 .min = bytes_per_ns(static_cast<double>(params.min_rate_bps)),
                 .slowest = above.slowest,
                 .debt_ns = above.debt_ns,
                 .above_ns = above.above_ns,
                 .last_ns = above.last_ns};
  ++children(from.parent).n[params.priority];
  const double ceil = bytes_per_ns(static_cast<double>(params.ceil_bps));
  if (params.ceil_bps != 0 && ceil < link_) {
    const uint32_t burst_bytes = params.burst_bytes != 0
                                     ? params.burst_bytes
                                     : default_burst_bytes(params.ceil_bps, capacity_.lmax_bytes);
    node.ceil = ceil;
    node.burst_ns = burst_bytes / ceil;
  }
  // A leaf's ceiling concerns nobody else.
  if (node.ceil < kForeverNs && from.number >= root()) {
    node.has_good_burst = node.has_good_burst && node.burst_ns >= above.above_ns;
    node.slowest = std::min(node.slowest, ceil);
    node.debt_ns = std::max(node.debt_ns, longest_ / ceil);
    node.last_ns += above.above_ns;
    node.above_ns += longest_ / ceil;
  }
  nodes_[from.number] = node;
}

// Once all below it are known.
void TreeBounds::add_green(uint32_t at) {
  BoundNode& node = nodes_[at];
  Green green;
  if (at >= root()) {
    for (const Green& of : children(at).green) green.add(of, 1);
  }
  green.rate = std::max(green.rate, node.min);
  green.min_sum += node.min;
  green.n_minima += node.min > 0 ? 1 : 0;
  green.n_children = green.n_minima > 0 ? 1 : 0;
  node.green = green;
  children(node.parent).green[node.priority].add(green, 1);
  const auto& n = children(node.parent).n;
  const bool is_alone = n[node.priority] == 1;
  node.is_first = is_alone && std::all_of(n.begin() + node.priority + 1, n.end(),
                                          [](uint32_t higher) { return higher == 0; });
}

// How long a packet of this node may wait, once green, if the path sends nothing before it.
// `lagging`, if not null, gets the rate at which the wait grows with C.
PathWait TreeBounds::wait_of(uint32_t at, GreenOrder order, double lag_ns, double* lagging) const {
  const BoundNode& first = nodes_[at];
  PathWait wait{.fixed_ns = first.debt_ns + first.last_ns + longest_ / link_};
  const auto add_credit = [&](const Green& green, double slowest) {
    wait.fixed_ns += (green.min_sum * lag_ns + green.n_minima * longest_) / slowest;
    wait.busy += green.rate / slowest;
    if (lagging != nullptr) *lagging += green.min_sum / slowest;
  };
  double turns = order == GreenOrder::kTurns ? 1 : kForeverNs;
  for (uint32_t below = at; below != root(); below = nodes_[below].parent) {
    const BoundNode& node = nodes_[below];
    const double slowest = nodes_[node.parent].slowest;
    const auto& green = children(node.parent).green;
    Green same = green[node.priority];
    same.add(node.green, -1);
    Green higher;
    for (uint32_t p = 0; p < kPriorities; ++p) {
      if (p > node.priority || (p < node.priority && order == GreenOrder::kAnyPriority)) {
        higher.add(green[p], 1);
      }
    }
    if (same.n_children > 0) {
      if (turns < kForeverNs) {
        wait.turn_ns += turns * same.n_children * longest_ / slowest;
        turns *= 1 + same.n_children;
      } else {
        add_credit(same, slowest);
      }
    }
    if (higher.n_children > 0) {
      add_credit(higher, slowest);
      turns = kForeverNs;
    }
  }
  return wait;
}

// How long the link sends nothing but what is green, if nothing green is ever skipped for a ceiling.
double TreeBounds::longest_busy_ns(const std::vector<PlacedNode>& nodes) const {
  const bool has_ceilings = std::ranges::any_of(nodes, [&](const PlacedNode& from) {
    return nodes_[from.number].min > 0 && nodes_[nodes_[from.number].parent].slowest < link_;
  });
  Green all;
  for (const Green& of : children(root()).green) all.add(of, 1);
  if (has_ceilings || all.rate >= link_) return kForeverNs;
  const auto idle_ns = static_cast<double>(capacity_.idle_credit_ns());
  return ((1 + all.n_minima) * longest_ + all.min_sum * idle_ns) / (link_ - all.rate);
}

// C. Without ceilings above minima, no node is green for longer than all that is green at once
// takes the link. Otherwise a node may be skipped, and others' credit is what they waited, too.
double TreeBounds::longest_lag_ns(const std::vector<PlacedNode>& nodes) const {
  const auto idle_ns = static_cast<double>(capacity_.idle_credit_ns());
  if (busy_ns_ < kForeverNs) return idle_ns + busy_ns_;
  double longest_ns = 0;
  for (const PlacedNode& from : nodes) {
    const BoundNode& node = nodes_[from.number];
    if (node.min <= 0) continue;
    double lagging = 0;
    PathWait wait = wait_of(from.number, GreenOrder::kAnyPriority, idle_ns, &lagging);
    wait.fixed_ns += (node.green.min_sum * idle_ns + node.green.n_minima * longest_) / node.slowest;
    wait.busy += lagging + (node.green.min_sum + node.green.rate) / node.slowest;
    if (!nodes_[node.parent].has_good_burst) return kForeverNs;
    longest_ns = std::max(longest_ns, wait.total_ns());
  }
  return idle_ns + longest_ns;
}

// The wait of each packet of a path that sends at this rate all the time.
double TreeBounds::steady_wait_ns(uint32_t at, double sends) const {
  const double slowest = nodes_[at].slowest;
  const PathWait turns = wait_of(at, GreenOrder::kTurns, lag_ns_, nullptr);
  const PathWait credit = wait_of(at, GreenOrder::kCredit, lag_ns_, nullptr);
  const double packet_ns = turns.turn_ns + shortest_ / slowest;
  const bool keeps_turns = turns.busy < 1 && packet_ns / (1 - turns.busy) <= shortest_ / sends;
  const bool keeps_credit = credit.busy + sends / slowest <= 1;
  return std::min({keeps_turns ? turns.total_ns() : kForeverNs,
                   keeps_credit ? credit.total_ns() : kForeverNs,
                   slowest == link_ ? busy_ns_ : kForeverNs});
}

Bound TreeBounds::made(double share, double own_ns, double others_ns) const {
  if (own_ns + others_ns > static_cast<double>(capacity_.catch_up_ns)) {
    return {.why_not = NoBound::kLateMinima};
  }
  return {.share_bps = share * kNsOfByteAt1Bps / stretch_,
          .own_ns = own_ns,
          .others_ns = others_ns,
          .arbiter_ns = 2 * server_.round_ns + server_.read_interval_ns};
}

// By the minimum of a node: the leaf, or one above it.
Bound TreeBounds::guaranteed(uint32_t leaf, uint32_t by) const {
  const BoundNode& own = nodes_[leaf];
  const BoundNode& node = nodes_[by];
  const double paid_ns = longest_ / node.min;
  const double step_ns = std::min(paid_ns, static_cast<double>(capacity_.min_step_ns()));
  const double green_ns = by == leaf ? step_ns : paid_ns + step_ns;
  const double share = std::min(node.min, own.ceil);
  const double wait_ns = steady_wait_ns(by, share);
  // What a node still owed is forgotten when it comes back from its ceiling.
  const bool is_forgotten = by != leaf && node.ceil < kForeverNs &&
                            green_ns + wait_ns > static_cast<double>(capacity_.idle_credit_ns());
  if (is_in_burst(own, green_ns + wait_ns) && !is_forgotten) {
    const Bound steady = made(share, green_ns, wait_ns);
    if (steady.has_one()) return steady;
  }
  // One packet at a time: whatever was sent before is paid after paid_ns, and each has its turn.
  const PathWait turn = wait_of(by, GreenOrder::kTurns, lag_ns_, nullptr);
  const double debt_ns = own.ceil < kForeverNs ? longest_ / own.ceil : 0;
  const double late_ns = turn.total_ns() + debt_ns;
  return made(std::min(share, shortest_ / (paid_ns + step_ns + late_ns)), paid_ns + step_ns,
              late_ns);
}

// Before whatever is not green.
Bound TreeBounds::first_of_all(uint32_t leaf) const {
  const BoundNode& own = nodes_[leaf];
  const PathWait wait = wait_of(leaf, GreenOrder::kAnyPriority, lag_ns_, nullptr);
  const double wait_ns =
      own.slowest == link_ ? std::min(wait.total_ns(), busy_ns_) : wait.total_ns();
  const double share = std::min(own.slowest * (1 - wait.busy), own.ceil);
  if (share <= 0) return {.why_not = NoBound::kLateMinima};
  if (!is_in_burst(own, longest_ / share + wait_ns)) {
    return {.why_not = NoBound::kShortBurst};
  }
  return made(share, longest_ / share, wait_ns);
}

Bound TreeBounds::bound_of(uint32_t leaf) const {
  const BoundNode& own = nodes_[leaf];
  if (own.parent == kNone) return {.why_not = NoBound::kNoShare};
  if (own.queue == LeafQueue::kFqCodel) return {.why_not = NoBound::kOwnOrder};
  if (!nodes_[own.parent].has_good_burst) return {.why_not = NoBound::kShortBurst};
  bool has_ceiling = false;  // on the way to the minimum
  for (uint32_t at = leaf; at != root(); at = nodes_[at].parent) {
    const BoundNode& node = nodes_[at];
    if (node.min > 0) {
      if (at == leaf || (node.green.n_minima == 1 && !has_ceiling)) return guaranteed(leaf, at);
    }
    if (!node.is_first) return {.why_not = NoBound::kNoMinimum};
    has_ceiling = has_ceiling || (at != leaf && node.ceil < kForeverNs);
  }
  return first_of_all(leaf);
}

}  // namespace

std::vector<Bound> tree_bounds(const TreeCapacity& capacity, const std::vector<PlacedNode>& nodes,
                               const Server& server) {
  if (server.rate_bps == 0) return {capacity.leaves, {.why_not = NoBound::kNoRate}};
  const TreeBounds bounds(capacity, nodes, server);
  std::vector<Bound> all(capacity.leaves);
  for (uint32_t leaf = 0; leaf < capacity.leaves; ++leaf) all[leaf] = bounds.bound_of(leaf);
  return all;
}

}  // namespace batchplane::egress
