// SPDX-License-Identifier: BSD-3-Clause
#include "modules/egress/egress_status.h"

#include <algorithm>
#include <map>
#include <utility>

#include "egress/tree/tree_params.h"
#include "modules/common/item_syntax.h"

namespace batchplane {
namespace {

constexpr uint32_t kNowhere = ~0U;
constexpr uint32_t kMostRows = 100'000;
// Up to this many flows, readings are stored, so that a node shows exactly the sum of the flows
// shown.
constexpr uint32_t kMostKept = 4096;
// Indexed by Enqueued.
constexpr std::array<const char*, egress::kEnqueued> kReasons{
    "", "egress_full", "egress_too_long", "egress_no_flow", "egress_shed", "egress_full"};

}  // namespace

EgressQuestion parse_egress_question(const Value& args) {
  check_keys(args, {"node", "limit", "by", "numbers"}, "status");
  EgressQuestion question;
  question.limit =
      static_cast<uint32_t>(int_under(args, "limit", 1, kMostRows, question.limit, "status"));
  if (args.has("node")) {
    if (!args["node"].is_string()) throw ConfigError("expected a name", "status.node", "a string");
    question.node = args["node"].as_string();
  }
  if (args.has("by")) {
    const bool is_word = args["by"].is_string();
    question.by_wait = is_word && args["by"].as_string() == "sojourn";
    if (!question.by_wait && !(is_word && args["by"].as_string() == "backlog")) {
      throw ConfigError("there is no such order", "status.by", "backlog or sojourn");
    }
  }
  if (args["numbers"].is_list()) {
    for (const Value& number : args["numbers"].as_list()) {
      const int64_t most = std::numeric_limits<uint32_t>::max();
      question.numbers.push_back(
          static_cast<uint32_t>(int_value(number, 0, most, "status.numbers")));
    }
  }
  return question;
}

void EgressStatus::Reading::add(const Reading& other) {
  pkts += other.pkts;
  bytes += other.bytes;
  marked_pkts += other.marked_pkts;
  backlog_pkts += other.backlog_pkts;
  backlog_bytes += other.backlog_bytes;
  for (size_t why = 0; why < dropped_pkts.size(); ++why) {
    dropped_pkts[why] += other.dropped_pkts[why];
  }
  for (size_t range = 0; range < waits.size(); ++range) waits[range] += other.waits[range];
}

EgressStatus::EgressStatus(const EgressBook& book, const EgressScheduler& scheduler,
                           const EgressCounts& counts, const EgressPromises& promises)
    : scheduler_(scheduler), counts_(counts), promises_(promises), nodes_(book.nodes()) {
  while (nodes_[first_inner_].parent != EgressNode::kNone) ++first_inner_;
  place_.assign(nodes_.back().number + 1, kNowhere);
  for (uint32_t n = 0; n < nodes_.size(); ++n) place_[nodes_[n].number] = n;
  link_children();
  sum_up();
}

void EgressStatus::link_children() {
  first_child_.assign(nodes_.size(), kNowhere);
  next_sibling_.assign(nodes_.size(), kNowhere);
  weights_.assign(nodes_.size(), 0);
  std::vector<std::array<uint64_t, egress::kPriorities>> sums(nodes_.size() - first_inner_);
  const auto sum_of = [&](uint32_t n) -> uint64_t& {
    return sums[place_[nodes_[n].parent] - first_inner_][nodes_[n].priority];
  };
  for (uint32_t n = static_cast<uint32_t>(nodes_.size()); n-- > 0;) {
    if (n == first_inner_) continue;
    const uint32_t parent = place_[nodes_[n].parent];
    next_sibling_[n] = std::exchange(first_child_[parent], n);
    sum_of(n) += nodes_[n].weight;
  }
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    if (n != first_inner_) weights_[n] = sum_of(n);
  }
}

// Adds each flow's reading to all nodes above it.
void EgressStatus::sum_up() {
  inner_.resize(nodes_.size() - first_inner_);
  levels_.assign(nodes_.size(), 0);
  const bool are_kept = first_inner_ <= kMostKept;
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    const Reading reading = is_flow(n) ? read(n) : Reading();
    for (uint32_t at = n; at != first_inner_; ++levels_[n]) {
      at = place_[nodes_[at].parent];
      if (is_flow(n)) inner_[at - first_inner_].add(reading);
    }
    if (are_kept && is_flow(n)) flows_.push_back(reading);
  }
}

EgressStatus::Reading EgressStatus::read(uint32_t n) const {
  if (!is_flow(n)) return inner_[n - first_inner_];
  if (n < flows_.size()) return flows_[n];
  const uint32_t flow = nodes_[n].number;
  const EgressFlowCount& count = counts_[flow];
  Reading reading{.pkts = count.pkts.load(std::memory_order_relaxed),
                  .bytes = count.bytes.load(std::memory_order_relaxed),
                  .marked_pkts = count.marked_pkts.load(std::memory_order_relaxed),
                  .backlog_pkts = scheduler_.backlog_pkts(flow),
                  .backlog_bytes = scheduler_.backlog_bytes(flow),
                  .dropped_pkts = counts_.dropped_pkts(flow)};
  count.waits.add_to(reading.waits);
  return reading;
}

EgressStatus::Badness EgressStatus::badness(uint32_t n, bool by_wait) const {
  const Reading reading = read(n);
  const uint64_t wait_ns = RecentWaits::quantile_ns(reading.waits, 0.99);
  const uint64_t backlog = std::max(reading.backlog_bytes, reading.backlog_pkts);
  return by_wait ? Badness{wait_ns, backlog} : Badness{backlog, wait_ns};
}

uint32_t EgressStatus::index_of(const std::string& node) const {
  if (node.empty()) return first_inner_;
  for (uint32_t n = first_inner_; n < nodes_.size(); ++n) {
    if (nodes_[n].name != nullptr && *nodes_[n].name == node) return n;
  }
  throw ConfigError("there is no node '" + node + "'", "status.node",
                    "`show egress` tells those below the link");
}

// All nodes below `top`, each before its children.
std::vector<uint32_t> EgressStatus::below(uint32_t top) const {
  std::vector<uint32_t> all;
  for (uint32_t at = first_child_[top]; at != kNowhere;) {
    all.push_back(at);
    if (first_child_[at] != kNowhere) {
      at = first_child_[at];
      continue;
    }
    while (next_sibling_[at] == kNowhere) {
      at = place_[nodes_[at].parent];
      if (at == top) return all;
    }
    at = next_sibling_[at];
  }
  return all;
}

// Those with recent packets or a backlog, the worst first, at most `limit`.
std::vector<uint32_t> EgressStatus::worst(std::vector<uint32_t> among,
                                          const EgressQuestion& question) const {
  std::vector<std::pair<Badness, uint32_t>> ranked;
  ranked.reserve(among.size());
  for (const uint32_t n : among) {
    const Badness bad = badness(n, question.by_wait);
    if (bad != Badness{}) ranked.emplace_back(bad, n);
  }
  const size_t wanted = std::min<size_t>(question.limit, ranked.size());
  const auto is_worse = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  };
  std::ranges::partial_sort(ranked, ranked.begin() + static_cast<ptrdiff_t>(wanted), is_worse);
  among.clear();
  for (size_t i = 0; i < wanted; ++i) among.push_back(ranked[i].second);
  return among;
}

Dict EgressStatus::row(uint32_t n) const {
  const EgressNode& node = nodes_[n];
  const Reading reading = read(n);
  Dict row{{"number", node.number},
           {"level", levels_[n]},
           {"pkts", reading.pkts},
           {"bytes", reading.bytes},
           {"backlog_pkts", reading.backlog_pkts},
           {"sojourn_p50_ns", RecentWaits::quantile_ns(reading.waits, 0.5)},
           {"sojourn_p99_ns", RecentWaits::quantile_ns(reading.waits, 0.99)},
           {"marked_pkts", reading.marked_pkts}};
  if (scheduler_.tells_bytes()) row["backlog_bytes"] = reading.backlog_bytes;
  if (is_flow(n)) {
    row["flow"] = node.number;
    const egress::Bound& bound = promises_.bound_of(node.number);
    if (bound.has_one()) row["bound_ns"] = static_cast<uint64_t>(bound.total_ns());
  }
  Dict drops;
  for (size_t why = 1; why < reading.dropped_pkts.size(); ++why) {
    if (reading.dropped_pkts[why] != 0) drops[kReasons[why]] = reading.dropped_pkts[why];
  }
  row["drops"] = std::move(drops);
  if (n == first_inner_) return row;
  if (node.name != nullptr) row["node"] = *node.name;
  const EgressNode& parent = nodes_[place_[node.parent]];
  if (parent.name != nullptr) row["parent"] = *parent.name;
  row["weight"] = node.weight;
  row["share"] = static_cast<double>(node.weight) / static_cast<double>(weights_[n]);
  if (node.priority != 0) row["priority"] = node.priority;
  if (node.min_rate_bps != 0) row["min_rate_bps"] = node.min_rate_bps;
  if (node.ceil_bps != 0) row["ceil_bps"] = node.ceil_bps;
  return row;
}

Dict EgressStatus::answer(const EgressQuestion& question) const {
  List rows;
  const auto tell = [&](const std::vector<uint32_t>& all) {
    for (const uint32_t n : all) rows.emplace_back(row(n));
  };
  if (!question.numbers.empty()) {
    for (const uint32_t number : question.numbers) {
      if (number < place_.size() && place_[number] != kNowhere) {
        rows.emplace_back(row(place_[number]));
      }
    }
    return {{"rows", std::move(rows)}};
  }
  const uint32_t top = index_of(question.node);
  const std::vector<uint32_t> all = below(top);
  std::vector<uint32_t> flows;
  std::vector<uint32_t> nodes;
  for (const uint32_t n : all) {
    if (is_flow(n)) flows.push_back(n);
    if (!is_flow(n) && place_[nodes_[n].parent] == top) nodes.push_back(n);
  }
  const size_t n_flows = flows.size();
  const size_t n_nodes = all.size() - n_flows;
  const bool is_whole = all.size() <= question.limit;
  rows.emplace_back(row(top));
  if (is_whole) {
    tell(all);
  } else {
    tell(worst(std::move(nodes), question));
    tell(worst(std::move(flows), question));
  }
  return {{"rows", std::move(rows)},
          {"is_whole", is_whole},
          {"n_flows", static_cast<uint64_t>(n_flows)},
          {"n_nodes", static_cast<uint64_t>(n_nodes)}};
}

}  // namespace batchplane
