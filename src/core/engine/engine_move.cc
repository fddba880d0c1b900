// SPDX-License-Identifier: BSD-3-Clause
// engine_move.cc - moves parts of the graph from one task to another while traffic flows.
#include <algorithm>

#include "core/engine/engine.h"
#include "core/engine/swap.h"
#include "core/module/kind.h"

namespace batchplane {

Engine::Moved Engine::move(const std::vector<PartMove>& parts) {
  const PipelineSpec spec = with_moves(buffered_spec(), parts, module_kind_facts());
  if (has_same_layout(spec, graph_->spec)) return {};
  auto next = build_graph(spec, graph_->env, graph_.get());
  Moved moved;
  for (const Instance& after : next->instances) {
    const auto it = graph_->index.find(after.name);
    if (it == graph_->index.end()) continue;
    Difference::Move move{after.name, runner_of(*graph_, graph_->instances[it->second]),
                          runner_of(*next, after)};
    if (move.from != move.to) moved.modules.push_back(std::move(move));
  }
  moved.is_changed = true;
  check_apply(*next);
  for (const Rewiring::Feeders& change : next->rewiring.feeders) {
    change.queue->prepare_feeders(change.workers);
  }
  swap_in(std::move(next));
  for (size_t w = 0; w < workers_.size(); ++w) {
    if (stop_ns_[w] == 0) continue;
    moved.involved.push_back(workers_[w]->options().name);
    moved.stop_ns = std::max(moved.stop_ns, stop_ns_[w]);
  }
  return moved;
}

}  // namespace batchplane
