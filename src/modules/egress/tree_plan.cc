// SPDX-License-Identifier: BSD-3-Clause
#include "modules/egress/tree_plan.h"

#include <algorithm>

#include "base/error.h"

namespace batchplane {

TreePlan::TreePlan(uint32_t max_flows, uint32_t max_inner_nodes)
    : max_flows_(max_flows),
      nodes_(max_flows + 1 + max_inner_nodes),
      inner_(1 + max_inner_nodes),
      names_(1 + max_inner_nodes) {
  nodes_[link()] = {.parent = kNoNumber, .exists = true};
  numbers_.reserve(max_inner_nodes);
  unused_.reserve(max_inner_nodes);
  for (uint32_t n = n_numbers(); n-- > link() + 1;) unused_.push_back(n);
}

uint32_t TreePlan::number_of(const std::string& name) const {
  if (name.empty()) return link();
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? kNoNumber : found->second;
}

TreeItem TreePlan::item_of(uint32_t number) const {
  const Node& node = nodes_[number];
  return {.is_flow = is_flow(number),
          .flow = is_flow(number) ? number : 0,
          .name = is_flow(number) ? "" : name_of(number),
          .parent = node.parent == link() ? "" : name_of(node.parent),
          .params = node.params};
}

uint32_t TreePlan::levels_of(uint32_t number) const {
  uint32_t levels = 0;
  for (uint32_t at = number; at != link(); at = nodes_[at].parent) ++levels;
  return levels;
}

uint32_t TreePlan::take_number(const std::string& name, const std::string& where) {
  if (unused_.empty()) {
    throw ConfigError("there are " + std::to_string(inner_.size() - 1) + " inner nodes already",
                      where, "raise max_nodes");
  }
  const uint32_t number = unused_.back();
  unused_.pop_back();
  numbers_.emplace(name, number);
  names_[number - link()] = name;
  return number;
}

void TreePlan::set(uint32_t number, const Node& node) {
  if (nodes_[number].exists) attach(number, false);
  nodes_[number] = node;
  if (node.exists) attach(number, true);
}

void TreePlan::attach(uint32_t number, bool is_attached) {
  const Node& node = nodes_[number];
  const auto count = [is_attached](auto& n, bool counts) {
    if (!counts) return;
    is_attached ? ++n : --n;
  };
  count(of(node.parent).n_children, true);
  count(n_flows_, is_flow(number));
  count(n_shaped_flows_, is_flow(number) && node.params.has_rates());
  const uint64_t bps = guaranteed_bps(number);
  change_guaranteed(node.parent, is_attached ? 0 : bps, is_attached ? bps : 0);
}

uint64_t TreePlan::guaranteed_bps(uint32_t number) const {
  const uint64_t own_bps = nodes_[number].params.min_rate_bps;
  return is_flow(number) ? own_bps : std::max(own_bps, of(number).guaranteed_bps);
}

void TreePlan::change_guaranteed(uint32_t inner, uint64_t less_bps, uint64_t more_bps) {
  for (uint32_t at = inner; less_bps != more_bps; at = nodes_[at].parent) {
    const uint64_t before_bps = guaranteed_bps(at);
    of(at).guaranteed_bps += more_bps - less_bps;
    if (at == link()) return;
    less_bps = before_bps;
    more_bps = guaranteed_bps(at);
  }
}

void TreePlan::check_minima(uint32_t number, uint64_t link_bps, const std::string& where) const {
  for (uint32_t at = number;; at = nodes_[at].parent) {
    const uint64_t ceil_bps = at == link() ? link_bps : nodes_[at].params.ceil_bps;
    const uint64_t wanted_bps = is_flow(at) ? 0 : of(at).guaranteed_bps;
    if (ceil_bps != 0 && wanted_bps > ceil_bps) {
      const std::string whose = at == link() ? "the link" : "'" + name_of(at) + "'";
      throw ConfigError("minimum rates below " + whose + " add up to " +
                            std::to_string(wanted_bps) + " bit/s, more than its " +
                            std::to_string(ceil_bps),
                        where, "lower minima, or allow that with overbook: true");
    }
    if (at == link()) return;
  }
}

bool TreePlan::renumber_like(const TreePlan& other) {
  if (max_flows_ != other.max_flows_ || n_numbers() != other.n_numbers()) return false;
  TreePlan next(max_flows_, n_numbers() - max_flows_ - 1);
  next.unused_ = other.unused_;
  std::unordered_map<uint32_t, uint32_t> renumbered{{link(), link()}};
  for (const auto& [name, number] : numbers_) {
    uint32_t there = other.number_of(name);
    if (there == kNoNumber) {
      if (next.unused_.empty()) return false;
      there = next.unused_.back();
      next.unused_.pop_back();
    }
    next.numbers_.emplace(name, there);
    next.names_[there - link()] = name;
    renumbered[number] = there;
  }
  std::vector<std::pair<uint32_t, uint32_t>> by_levels;  // by this plan's own numbers
  for (uint32_t n = 0; n < n_numbers(); ++n) {
    if (nodes_[n].exists && n != link()) by_levels.emplace_back(levels_of(n), n);
  }
  std::ranges::sort(by_levels);
  for (const auto& [levels, n] : by_levels) {
    Node node = nodes_[n];
    node.parent = renumbered.at(node.parent);
    next.set(is_flow(n) ? n : renumbered.at(n), node);
  }
  *this = std::move(next);
  return true;
}

}  // namespace batchplane
