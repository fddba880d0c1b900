// SPDX-License-Identifier: BSD-3-Clause
#include "modules/session/session_shape.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/error.h"
#include "modules/common/item_syntax.h"

namespace batchplane::session {
namespace {

constexpr std::array<const char*, 2> kWays = {"down", "up"};  // by is_uplink
constexpr std::array<const char*, 4> kQueues = {"fifo", "codel", "fq_codel",
                                                "pie"};  // by LeafQueue

// A worker on a shared core may pause for some milliseconds. A session's rate is an average over a
// time that users notice, so traffic that a pause delayed may catch up; nodes that protect a line
// behind them have smaller bursts.
constexpr uint64_t kUsualBurstMs = 10;
constexpr uint64_t kLeastBurstBytes = 2 * 1600;

uint32_t usual_burst_bytes(uint64_t ceil_bps) {
  const uint64_t bytes = ceil_bps / 8'000 * kUsualBurstMs;
  return static_cast<uint32_t>(std::clamp<uint64_t>(bytes, kLeastBurstBytes, 1'000'000'000));
}

// The scheduler parameters of the node or leaf for this QER. The queue limit is the scheduler's
// default for flows.
egress::NodeParams params_of(const Qer& qer, bool is_uplink) {
  egress::NodeParams params{.min_rate_bps = is_uplink ? qer.gbr_up_bps : qer.gbr_down_bps,
                            .ceil_bps = is_uplink ? qer.mbr_up_bps : qer.mbr_down_bps,
                            .priority = qer.priority,
                            .limit_bytes = 0};
  if (qer.has_burst) {
    const double bytes =
        static_cast<double>(params.ceil_bps) * static_cast<double>(qer.burst_ns) / 8e9;
    params.burst_bytes = static_cast<uint32_t>(std::clamp(bytes, 0.0, 1e9));
  } else {
    params.burst_bytes = usual_burst_bytes(params.ceil_bps);
  }
  return params;
}

class Nodes {
 public:
  Nodes(const Session& session, bool is_uplink, std::string where)
      : session_(session), is_uplink_(is_uplink), where_(std::move(where)) {
    for (const Pdr& pdr : session.pdrs) {
      for (const Qer* const qer : chain_of(pdr)) ++n_users_[qer];
    }
  }

  void add(const Pdr& pdr, egress::LeafQueue queue, const MarkOfSlot& mark_of) {
    std::vector<const Qer*> chain = chain_of(pdr);
    if (chain.empty()) return;
    std::ranges::sort(
        chain, {}, [&](const Qer* qer) { return std::pair(-int64_t{n_users_.at(qer)}, qer->id); });
    TreeGuest leaf{.mark = mark_of(pdr.slot), .where = place_of(*chain.back())};
    leaf.params.limit_bytes = 0;
    if (n_users_.at(chain.back()) == 1) {
      leaf.params = params_of(*chain.back(), is_uplink_);
      chain.pop_back();
    }
    leaf.params.queue = queue;
    for (const Qer* const qer : chain) leaf.parent = add_node(*qer, leaf.parent);
    leaves_.push_back(std::move(leaf));
  }
  [[nodiscard]] std::vector<TreeGuest> take() {
    std::ranges::move(leaves_, std::back_inserter(nodes_));
    return std::move(nodes_);
  }

 private:
  [[nodiscard]] std::vector<const Qer*> chain_of(const Pdr& pdr) const {
    std::vector<const Qer*> chain;
    if (pdr.is_uplink != is_uplink_) return chain;
    for (const uint32_t id : pdr.qers) {
      const Qer* const qer = session_.qer(id);
      if (qer->is_shaped[is_uplink_ ? 1 : 0]) chain.push_back(qer);
    }
    return chain;
  }
  [[nodiscard]] std::string place_of(const Qer& qer) const {
    return where_ + ", qer " + std::to_string(qer.id);
  }
  const std::string& add_node(const Qer& qer, const std::string& parent) {
    const std::string name = "session." + std::to_string(session_.seid) + ".qer." +
                             std::to_string(qer.id) + "." + kWays[is_uplink_ ? 1 : 0];
    const auto known = std::ranges::find(nodes_, name, &TreeGuest::name);
    if (known == nodes_.end()) {
      nodes_.push_back({.name = name,
                        .parent = parent,
                        .params = params_of(qer, is_uplink_),
                        .where = place_of(qer)});
      return nodes_.back().name;
    }
    if (known->parent != parent) {
      throw ConfigError("a shaped QER shares only some of its PDRs with another one", place_of(qer),
                        "let one of both be named by all PDRs of the other");
    }
    return known->name;
  }

  const Session& session_;
  const bool is_uplink_;
  const std::string where_;
  std::map<const Qer*, uint32_t> n_users_;
  std::vector<TreeGuest> nodes_;
  std::vector<TreeGuest> leaves_;
};

bool is_same(const TreeGuest& one, const TreeGuest& other) {
  return one.mark == other.mark && one.name == other.name;
}

}  // namespace

std::vector<TreeGuest> shaped_nodes(const Session& session, bool is_uplink, egress::LeafQueue queue,
                                    const MarkOfSlot& mark_of, const std::string& where) {
  const bool is_any_shaped = std::ranges::any_of(
      session.qers, [&](const Qer& qer) { return qer.is_shaped[is_uplink ? 1 : 0]; });
  if (!is_any_shaped) return {};
  Nodes nodes(session, is_uplink,
              (where.empty() ? "" : where + ", ") + "session " + std::to_string(session.seid));
  for (const Pdr& pdr : session.pdrs) nodes.add(pdr, queue, mark_of);
  return nodes.take();
}

void SessionShaper::configure(const Args& args) {
  const Value shape(args.dict("shape"));
  const std::string where = args.where() + ".shape";
  check_keys(shape, {"down", "up", "queue"}, where);
  const auto text = [&](const char* key, const char* expected) -> std::string {
    if (!shape.has(key)) return "";
    if (shape[key].is_string()) return shape[key].as_string();
    throw ConfigError("expected a name", where + "." + key, expected);
  };
  for (const bool is_uplink : {false, true}) {
    const char* const way = kWays[is_uplink ? 1 : 0];
    Side& side = sides_[is_uplink ? 1 : 0];
    side.scheduler = text(way, "a module of kind egress");
    side.where = where + "." + way;
    if (!side.scheduler.empty()) side.place = flow_tree_place(args.env(), side.scheduler);
  }
  if (!shape.has("queue")) return;
  const auto* const found =
      std::ranges::find(kQueues, text("queue", "fifo, codel, fq_codel or pie"));
  if (found == kQueues.end()) {
    throw ConfigError("unknown queue", where + ".queue", "fifo, codel, fq_codel or pie");
  }
  queue_ = static_cast<egress::LeafQueue>(found - kQueues.begin());
}

FlowTree& SessionShaper::tree_of(bool is_uplink, const std::string& where) const {
  const char* const way = kWays[is_uplink ? 1 : 0];
  const Side& side = sides_[is_uplink ? 1 : 0];
  if (side.place == nullptr) {
    throw ConfigError("nothing shapes what goes " + std::string(way), where,
                      "name a scheduler: shape: {" + std::string(way) + ": MODULE}");
  }
  if (side.place->tree != nullptr) return *side.place->tree;
  throw ConfigError("there is no scheduler '" + side.scheduler + "'", where,
                    "let shape name a module of kind egress with discipline: tree");
}

void SessionShaper::check() const {
  for (const bool is_uplink : {false, true}) {
    const Side& side = sides_[is_uplink ? 1 : 0];
    if (side.place != nullptr) (void)tree_of(is_uplink, side.where);
  }
}

void SessionShaper::stage(const std::vector<Change>& changes, const MarkOfSlot& mark_of) {
  std::map<FlowTree*, TreeChange> of_tree;
  for (const Change& change : changes) {
    for (const bool is_uplink : {false, true}) {
      const auto nodes = [&](const Session* session) {
        if (session == nullptr) return std::vector<TreeGuest>();
        return shaped_nodes(*session, is_uplink, queue_, mark_of, change.where);
      };
      std::vector<TreeGuest> before = nodes(change.before);
      std::vector<TreeGuest> after = nodes(change.after);
      const auto stays = [&](const TreeGuest& node) {
        return std::ranges::any_of(after, [&](const auto& other) { return is_same(node, other); });
      };
      std::erase_if(before, stays);
      const bool is_nowhere = !has_tree(is_uplink) && after.empty();
      if (is_nowhere || (before.empty() && after.empty())) continue;
      TreeChange& into = of_tree[&tree_of(is_uplink, (after.empty() ? before : after)[0].where)];
      into.gone.insert(into.gone.end(), before.rbegin(), before.rend());
      std::ranges::move(after, std::back_inserter(into.placed));
    }
  }
  try {
    for (const auto& [tree, change] : of_tree) {
      tree->stage(change);
      staged_.push_back(tree);
    }
  } catch (const ConfigError&) {
    settle(false);
    throw;
  }
}

void SessionShaper::settle(bool is_wanted) noexcept {
  for (FlowTree* const tree : staged_) tree->settle(is_wanted);
  staged_.clear();
  is_filled_ = is_filled_ || is_wanted;
}

bool SessionShaper::is_free(uint32_t slot, bool is_uplink) const {
  const Side& side = sides_[is_uplink ? 1 : 0];
  return side.place == nullptr || side.place->is_free(flow_of_slot(slot));
}

ParamSpec shape_spec() {
  return {.name = "shape",
          .type = ParamType::kDict,
          .default_value = Dict{},
          .help =
              "which schedulers shape sessions whose QERs say so: {down, up, queue}: names of "
              "modules of kind egress with discipline: tree, and what their leaves have: fifo, "
              "codel, fq_codel or pie"};
}

}  // namespace batchplane::session
