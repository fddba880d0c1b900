// SPDX-License-Identifier: BSD-3-Clause
#include "modules/egress/egress_book.h"

#include <set>

namespace batchplane {
namespace {

std::string place(size_t i) { return "flows[" + std::to_string(i) + "]"; }

}  // namespace

// Every flow may be changed once in one command.
EgressBook::EgressBook(const Args& args, uint32_t max_flows)
    : flows_(parse_egress_flows(args)),
      otherwise_(default_egress_flow(args)),
      is_known_(max_flows),
      edits_(max_flows + 1024),
      is_leaving_(max_flows, false) {
  leaving_.reserve(max_flows);
  for (const auto& [flow, params] : flows_) is_known_[flow].store(true, std::memory_order_relaxed);
}

std::vector<EgressBook::Item> EgressBook::parse(const List& items, const char* verb) const {
  std::vector<Item> parsed;
  std::set<uint32_t> seen;
  for (size_t i = 0; i < items.size(); ++i) {
    parsed.push_back(
        parse_egress_flow(items[i], otherwise_, static_cast<uint32_t>(is_known_.size()), place(i)));
    if (!seen.insert(parsed.back().first).second) {
      throw ConfigError("flow " + std::to_string(parsed.back().first) + " is there twice", place(i),
                        std::string(verb) + " it once");
    }
  }
  return parsed;
}

void EgressBook::refuse_too_many(size_t n_edits) {
  if (n_edits <= edits_.free_slots()) return;
  throw ConfigError("too many changes at once", "flows",
                    "the scheduler's worker has not carried out earlier ones yet: try again");
}

void EgressBook::edit(const List& items, bool must_exist) {
  const std::vector<Item> parsed = parse(items, must_exist ? "replace" : "add");
  uint64_t weight_sum = 0;
  for (const auto& [flow, params] : flows_) weight_sum += params.weight;
  for (size_t i = 0; i < parsed.size(); ++i) {
    const auto& [flow, params] = parsed[i];
    if (must_exist != flows_.contains(flow)) {
      throw ConfigError(must_exist ? "there is no such flow" : "the flow exists", place(i),
                        must_exist ? "add it" : "replace it");
    }
    weight_sum += params.weight;
    if (must_exist) weight_sum -= flows_.at(flow).weight;
  }
  check_weight_sum(weight_sum, "flows");
  refuse_too_many(parsed.size());
  for (const auto& [flow, params] : parsed) {
    order({.flow = flow, .params = params});
    flows_[flow] = params;
    is_known_[flow].store(true, std::memory_order_relaxed);
  }
}

void EgressBook::remove(const List& items) {
  const std::vector<Item> parsed = parse(items, "delete");
  for (size_t i = 0; i < parsed.size(); ++i) {
    const uint32_t flow = parsed[i].first;
    if (flow != 0 && flows_.contains(flow)) continue;
    throw ConfigError(flow == 0 ? "flow 0 takes what no other flow has" : "there is no such flow",
                      place(i), "delete another");
  }
  refuse_too_many(parsed.size());
  for (const auto& [flow, params] : parsed) {
    is_known_[flow].store(false, std::memory_order_relaxed);
    flows_.erase(flow);
    order({.kind = Edit::Kind::kRemove, .flow = flow});
  }
}

void EgressBook::set_rate_bps(uint64_t rate_bps) {
  refuse_too_many(1);
  order({.kind = Edit::Kind::kRate, .rate_bps = rate_bps});
}

List EgressBook::list() const {
  List list;
  for (const auto& [flow, params] : flows_) list.push_back(egress_flow_value(flow, params));
  return list;
}

void EgressBook::carry_out(EgressScheduler& scheduler) noexcept {
  Edit edit;
  while (edits_.dequeue(&edit, 1) == 1) {
    switch (edit.kind) {
      case Edit::Kind::kConfigure:
        scheduler.configure(edit.flow, edit.params);
        break;
      case Edit::Kind::kRemove:
        leave(edit.flow);
        break;
      case Edit::Kind::kRate:
        scheduler.set_rate_bps(edit.rate_bps);
        break;
    }
  }
  if (leaving_.empty()) [[likely]]
    return;
  const uint32_t flow = leaving_.back();
  const bool is_there_again = is_known_[flow].load(std::memory_order_relaxed);
  if (!is_there_again && scheduler.backlog_pkts(flow) != 0) {
    std::swap(leaving_.front(), leaving_.back());
    return;
  }
  if (!is_there_again) scheduler.remove(flow);
  is_leaving_[flow] = false;
  leaving_.pop_back();
}

void EgressBook::leave(uint32_t flow) noexcept {
  if (is_leaving_[flow]) return;
  is_leaving_[flow] = true;
  leaving_.push_back(flow);
}

void EgressBook::take_over(EgressScheduler& scheduler, const EgressBook& old) noexcept {
  for (const uint32_t flow : old.leaving_) leave(flow);
  for (const auto& [flow, params] : old.flows_) {
    if (!flows_.contains(flow)) leave(flow);
  }
  configure_all(scheduler);
}

void EgressBook::configure_all(EgressScheduler& scheduler) const {
  for (const auto& [flow, params] : flows_) scheduler.configure(flow, params);
}

}  // namespace batchplane
