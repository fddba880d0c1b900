// SPDX-License-Identifier: BSD-3-Clause
#include "modules/egress/tree_book.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "egress/bound/tree_bound.h"
#include "modules/common/item_syntax.h"
#include "modules/egress/egress_flows.h"

namespace batchplane {
namespace {

TreeDefaults defaults_of(const Args& args) {
  const uint64_t limit_bytes = uint64_t{args.u32("limit_pkts")} * args.u32("lmax_bytes");
  TreeDefaults defaults{.numbers = flow_numbers(args)};
  defaults.params.limit_bytes = static_cast<uint32_t>(std::min<uint64_t>(limit_bytes, 1U << 30));
  return defaults;
}

std::string name_of(const TreeItem& item) {
  return item.is_flow ? "flow " + std::to_string(item.flow) : "node '" + item.name + "'";
}

std::string nth(const char* list, size_t i) {
  return std::string(list) + "[" + std::to_string(i) + "]";
}

}  // namespace

TreeBook::TreeBook(const Args& args, const EgressSettings& settings)
    : EgressBook(settings.capacity.flows, settings.capacity.flows + settings.inner_nodes),
      file_(args.string("tree_file")),
      declared_nodes_(args.list("nodes")),
      declared_flows_(args.list("flows")),
      may_overbook_(args.flag("overbook")),
      shaped_flows_limit_(settings.shaped_flows),
      otherwise_(defaults_of(args)),
      link_bps_(settings.rate_bps),
      plan_(settings.capacity.flows, settings.inner_nodes - 1),
      free_numbers_(settings.inner_nodes) {
  load(args);
}

// Reads a file twice: inner nodes first, because flows refer to them.
void TreeBook::load(const Args& args) {
  const std::string in_list = args.where() + ".";
  std::vector<Staged> inner;
  for (size_t i = 0; i < declared_nodes_.size(); ++i) {
    const std::string where = in_list + nth("nodes", i);
    inner.push_back({parse_tree_item(declared_nodes_[i], otherwise_, where), where});
    if (inner.back().item.is_flow) {
      throw ConfigError("a flow is no inner node", where, "list it under flows");
    }
  }
  const auto each_row = [&](const auto& use) {
    if (!file_.empty()) each_tree_row(file_, otherwise_, in_list + "tree_file", use);
  };
  each_row([&](TreeItem item, const std::string& where) {
    if (!item.is_flow) inner.push_back({std::move(item), where});
  });
  declare_inner(std::move(inner));
  for (size_t i = 0; i < declared_flows_.size(); ++i) {
    const std::string where = in_list + nth("flows", i);
    declare_flow(parse_tree_item(declared_flows_[i], otherwise_, where), where);
  }
  each_row([&](TreeItem item, const std::string& where) {
    if (item.is_flow) declare_flow(std::move(item), where);
  });
  if (!plan_[0].exists) declare_flow({.is_flow = true, .params = otherwise_.params}, in_list);
  check_shaped("flows");
  if (may_overbook_) return;
  for (uint32_t n = plan_.link(); n < plan_.n_numbers(); ++n) {
    if (plan_[n].exists) plan_.check_minima(n, link_bps_, args.where());
  }
}

void TreeBook::declare_inner(std::vector<Staged> staged) {
  std::vector<uint32_t> taken;
  stage(staged, false, taken);
  for (const Staged& one : staged) plan_.set(one.number, {one.item.params, one.parent, true});
}

void TreeBook::declare_flow(TreeItem item, const std::string& where) {
  if (!item.is_flow) throw ConfigError("'flow' is missing", where, "its number");
  if (plan_[item.flow].exists) throw ConfigError(name_of(item) + " is there twice", where);
  const uint32_t parent = plan_.number_of(item.parent);
  if (parent == TreePlan::kNoNumber) {
    throw ConfigError("there is no node '" + item.parent + "'", where, "add it, or name another");
  }
  plan_.set(item.flow, {item.params, parent, true});
  set_known(item.flow);
  note_queue(item.params);
}

std::vector<TreeBook::Staged> TreeBook::parse(const Value& args) const {
  std::vector<Staged> staged;
  const auto add = [&](const List& list, const char* name) {
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string where = nth(name, i);
      staged.push_back({parse_tree_item(list[i], otherwise_, where), where});
    }
  };
  if (args["nodes"].is_list()) add(args["nodes"].as_list(), "nodes");
  if (!args["nodes"].is_list() || args["flows"].is_list()) add(items_under(args, "flows"), "flows");
  return staged;
}

// Assigns numbers, checks that parents exist, and sorts the entries into the order in which they
// may be set.
void TreeBook::stage(std::vector<Staged>& staged, bool must_exist, std::vector<uint32_t>& taken) {
  find_numbers(staged, must_exist, taken);
  find_parents(staged);
  std::ranges::stable_sort(staged, {}, &Staged::levels);
}

void TreeBook::find_numbers(std::vector<Staged>& staged, bool must_exist,
                            std::vector<uint32_t>& taken) {
  std::unordered_set<uint32_t> seen;
  for (Staged& one : staged) {
    const TreeItem& item = one.item;
    one.number = item.is_flow ? item.flow : plan_.number_of(item.name);
    const bool is_new_name = one.number == TreePlan::kNoNumber;
    if (!is_new_name && !seen.insert(one.number).second) {
      throw ConfigError(name_of(item) + " is there twice", one.where, "say everything of it once");
    }
    const bool exists = !is_new_name && plan_[one.number].exists;
    if (exists) refuse_guest(one.number, one.where);
    if (exists != must_exist) {
      throw ConfigError(exists ? name_of(item) + " exists" : "there is no " + name_of(item),
                        one.where, exists ? "replace it" : "add it");
    }
    if (!is_new_name) continue;
    one.number = plan_.take_number(item.name, one.where);
    taken.push_back(one.number);
    seen.insert(one.number);
  }
}

void TreeBook::find_parents(std::vector<Staged>& staged) const {
  std::unordered_map<uint32_t, uint32_t> parents;
  for (Staged& one : staged) {
    one.parent = plan_.number_of(one.item.parent);
    if (one.parent == TreePlan::kNoNumber) {
      throw ConfigError("there is no node '" + one.item.parent + "'", one.where,
                        "add it, or name another");
    }
    refuse_guest(one.parent, one.where);
    parents[one.number] = one.parent;
  }
  for (Staged& one : staged) {
    one.levels = 0;
    for (uint32_t at = one.number; at != plan_.link(); ++one.levels) {
      if (one.levels == kMaxTreeLevels) {
        throw ConfigError(name_of(one.item) + " lies below itself, or more than " +
                              std::to_string(kMaxTreeLevels) + " levels below the link",
                          one.where, "choose another parent");
      }
      const auto found = parents.find(at);
      at = found != parents.end() ? found->second : plan_[at].parent;
    }
  }
}

void TreeBook::check_shaped(const std::string& where) const {
  if (plan_.n_shaped_flows() <= shaped_flows_limit_) return;
  throw ConfigError(
      "more than " + std::to_string(shaped_flows_limit_) + " flows would have rates of their own",
      where, "give rates to nodes above them");
}

void TreeBook::set_rate_bps(uint64_t rate_bps) {
  if (!may_overbook_) plan_.check_minima(plan_.link(), rate_bps, "set.rate_bps");
  EgressBook::set_rate_bps(rate_bps);
  link_bps_ = rate_bps;
}

void TreeBook::undo(std::vector<Before>& before, const std::vector<uint32_t>& taken) {
  for (; !before.empty(); before.pop_back()) plan_.set(before.back().first, before.back().second);
  for (const uint32_t inner : taken) {
    plan_.forget_name(inner);
    plan_.give_back_number(inner);
  }
}

void TreeBook::edit(const Value& args, bool must_exist) {
  take_back_numbers(free_numbers_);
  std::vector<Staged> staged = parse(args);
  std::vector<uint32_t> taken;
  std::vector<Before> before;
  try {
    stage(staged, must_exist, taken);
    for (const Staged& one : staged) {
      before.emplace_back(one.number, plan_[one.number]);
      plan_.set(one.number, {one.item.params, one.parent, true});
    }
    check_shaped("flows");
    for (const Staged& one : staged) {
      if (!may_overbook_) plan_.check_minima(one.number, link_bps_, one.where);
    }
    refuse_too_many(staged.size());
  } catch (const ConfigError&) {
    undo(before, taken);
    throw;
  }
  is_edited_ = true;
  for (const Staged& one : staged) {
    order(place_edit(one.number));
    note_queue(one.item.params);
  }
}

void TreeBook::remove(const Value& args) {
  std::vector<Staged> staged = parse(args);
  std::vector<uint32_t> taken;
  find_numbers(staged, true, taken);
  std::vector<Before> before;
  try {
    for (const Staged& one : staged) {
      if (one.item.is_flow && one.number == 0) {
        throw ConfigError("flow 0 takes what no other flow has", one.where, "delete another");
      }
      if (!one.item.is_flow && plan_.has_children(one.number)) {
        throw ConfigError(name_of(one.item) + " has something below it", one.where,
                          "delete or move that first");
      }
      before.emplace_back(one.number, plan_[one.number]);
      plan_.set(one.number, {});
    }
    refuse_too_many(staged.size());
  } catch (const ConfigError&) {
    undo(before, taken);
    throw;
  }
  is_edited_ = true;
  for (const Staged& one : staged) {
    if (!one.item.is_flow) plan_.forget_name(one.number);
    order({.kind = EgressEdit::Kind::kRemove, .number = one.number});
  }
}

void TreeBook::note_queue(const egress::NodeParams& params) {
  if (params.queue != egress::LeafQueue::kFifo) set_has_connections();
}

void TreeBook::take_back_numbers(SpscRing<uint32_t>& free_numbers) {
  uint32_t number = 0;
  while (free_numbers.dequeue(&number, 1) == 1) plan_.give_back_number(number);
}

void TreeBook::has_left(uint32_t number) noexcept {
  if (!plan_.is_flow(number)) free_numbers_.enqueue(&number, 1);
}

void TreeBook::each_flow(const std::function<bool(uint32_t flow, Dict said)>& use) const {
  for (uint32_t flow = 0; flow < plan_.max_flows(); ++flow) {
    if (!plan_[flow].exists) continue;
    Dict said = tree_item_value(plan_.item_of(flow), otherwise_);
    said.erase("flow");
    said["weight"] = plan_[flow].params.weight;
    if (!use(flow, std::move(said))) return;
  }
}

std::vector<EgressNode> TreeBook::nodes() const {
  std::vector<EgressNode> all;
  for (uint32_t n = 0; n < plan_.n_numbers(); ++n) {
    const TreePlan::Node& node = plan_[n];
    if (!node.exists) continue;
    const bool is_between = !plan_.is_flow(n) && n != plan_.link();
    all.push_back({.number = n,
                   .parent = n == plan_.link() ? EgressNode::kNone : node.parent,
                   .name = is_between ? &plan_.name_of(n) : nullptr,
                   .weight = node.params.weight,
                   .priority = node.params.priority,
                   .min_rate_bps = node.params.min_rate_bps,
                   .ceil_bps = node.params.ceil_bps});
  }
  return all;
}

List TreeBook::list(bool flows) const {
  List all;
  const uint32_t begin = flows ? 0 : plan_.link() + 1;
  const uint32_t end = flows ? plan_.link() : plan_.n_numbers();
  for (uint32_t n = begin; n < end; ++n) {
    if (!plan_[n].exists || plan_[n].is_guest) continue;
    all.emplace_back(tree_item_value(plan_.item_of(n), otherwise_));
  }
  return all;
}

Dict TreeBook::saved_params() const {
  if (!is_edited_) {
    return {{"nodes", declared_nodes_}, {"flows", declared_flows_}, {"tree_file", file_}};
  }
  return {{"nodes", list(false)}, {"flows", list(true)}, {"tree_file", ""}};
}

EgressEdit TreeBook::place_edit(uint32_t number) const {
  return {.kind = EgressEdit::Kind::kPlace,
          .number = number,
          .parent = plan_[number].parent,
          .generation = plan_[number].generation,
          .node = plan_[number].params};
}

std::vector<uint32_t> TreeBook::in_order() const {
  std::vector<std::pair<uint32_t, uint32_t>> inner;
  for (uint32_t n = plan_.link() + 1; n < plan_.n_numbers(); ++n) {
    if (plan_[n].exists) inner.emplace_back(plan_.levels_of(n), n);
  }
  std::ranges::sort(inner);
  std::vector<uint32_t> all;
  for (const auto& [levels, n] : inner) all.push_back(n);
  for (uint32_t flow = 0; flow < plan_.max_flows(); ++flow) {
    if (plan_[flow].exists) all.push_back(flow);
  }
  return all;
}

void TreeBook::configure_all(EgressScheduler& scheduler) const {
  for (const uint32_t n : in_order()) scheduler.edit(place_edit(n));
}

std::vector<egress::Bound> TreeBook::bounds(const EgressSettings& settings) const {
  std::vector<egress::PlacedNode> nodes;
  for (const uint32_t n : in_order()) nodes.push_back({n, plan_[n].parent, plan_[n].params});
  return egress::tree_bounds(tree_capacity(settings), nodes, {.rate_bps = settings.rate_bps});
}

void TreeBook::tell_numbers(Dict& into) const {
  List nodes;
  for (const uint32_t n : in_order()) {
    const egress::NodeParams& params = plan_[n].params;
    Dict node{{"number", n},
              {"parent", plan_[n].parent},
              {"min_rate_bps", params.min_rate_bps},
              {"ceil_bps", params.ceil_bps},
              {"burst_bytes", params.burst_bytes},
              {"weight", params.weight},
              {"priority", uint32_t{params.priority}},
              {"queue", kQueueNames[static_cast<size_t>(params.queue)]},
              {"limit_bytes", params.limit_bytes}};
    if (!plan_.is_flow(n)) node["name"] = plan_.name_of(n);
    nodes.emplace_back(std::move(node));
  }
  into["nodes"] = std::move(nodes);
}

void TreeBook::inherit(const EgressBook& old) {
  can_take_over_ = plan_.renumber_like(static_cast<const TreeBook&>(old).plan_);
}

// Moves inner nodes to the link first, so that none is placed below itself on the way to its new
// parent.
void TreeBook::take_over(EgressScheduler& scheduler, EgressBook& old_book) noexcept {
  const TreePlan& old = static_cast<TreeBook&>(old_book).plan_;
  take_back_numbers(static_cast<TreeBook&>(old_book).free_numbers_);
  leave_like(old_book);
  for (uint32_t n = 0; n < old.n_numbers(); ++n) {
    if (n == old.link() || !old[n].exists) continue;
    if (!plan_[n].exists) {
      leave(n);
    } else if (!plan_.is_flow(n) && plan_[n].parent != old[n].parent) {
      EgressEdit to_link = place_edit(n);
      to_link.parent = plan_.link();
      scheduler.edit(to_link);
    }
  }
  configure_all(scheduler);
}

}  // namespace batchplane
