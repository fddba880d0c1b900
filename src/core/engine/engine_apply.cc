// SPDX-License-Identifier: BSD-3-Clause
// engine_apply.cc - replaces the graph of running workers between two runs.
#include <algorithm>
#include <optional>

#include "base/patience.h"
#include "core/engine/capture_order.h"
#include "core/engine/engine.h"
#include "core/engine/swap.h"

namespace batchplane {
namespace {

const DropReason kRemovedByApply{"removed_by_apply",
                                 "the packet was held by a module that an apply removed",
                                 "set the trigger to 0 before removing a module"};

std::optional<Difference::Move> move_of(const std::string& module, const Graph& from,
                                        const Graph& to) {
  const Instance& before = from.instances[from.index.at(module)];
  const Instance& after = to.instances[to.index.at(module)];
  Difference::Move move{module, runner_of(from, before), runner_of(to, after)};
  if (move.from == move.to) move = {module, poller_of(from, before), poller_of(to, after)};
  return move.from == move.to ? std::nullopt : std::make_optional(std::move(move));
}

bool has_same_buffer(const ModuleSpec& a, const ModuleSpec& b) {
  return a.trigger_pkts == b.trigger_pkts && a.age_limit_ns == b.age_limit_ns &&
         a.weight == b.weight && a.queue_pkts == b.queue_pkts && a.poll_pkts == b.poll_pkts;
}

}  // namespace

Difference Engine::difference(const Graph& next) const {
  Difference result;
  const PipelineSpec running = current_spec();
  std::map<std::string, size_t> old_modules;
  for (size_t m = 0; m < running.modules.size(); ++m) old_modules[running.modules[m].name] = m;
  for (const ModuleSpec& module : next.spec.modules) {
    const auto it = old_modules.find(module.name);
    if (it == old_modules.end()) {
      result.added.push_back(module.name);
      continue;
    }
    const ModuleSpec& old_spec = running.modules[it->second];
    // Parameters as given: those of the running module include every default and all table entries.
    const Dict& old_params = graph_->spec.modules[it->second].params;
    old_modules.erase(it);
    if (old_spec.kind != module.kind) {
      result.removed.push_back(module.name);
      result.added.push_back(module.name);
      continue;
    }
    const std::optional<Difference::Move> move = move_of(module.name, *graph_, next);
    if (move) result.moved.push_back(*move);
    if (old_params != module.params || !has_same_buffer(old_spec, module)) {
      result.changed.push_back(module.name);
    } else if (!move) {
      result.kept.push_back(module.name);
    }
  }
  for (const auto& [name, m] : old_modules) result.removed.push_back(name);
  return result;
}

void Engine::check_apply(const Graph& next) const {
  const PipelineSpec& a = graph_->spec;
  const PipelineSpec& b = next.spec;
  const bool same_workers =
      std::ranges::equal(a.workers, b.workers, [](const auto& x, const auto& y) {
        return x.name == y.name && x.is_shared == y.is_shared && (x.core == y.core || y.core < 0);
      });
  if (!same_workers && !b.workers.empty()) {
    throw ConfigError("the workers differ from those that run", b.where("workers"),
                      "stop, then start with the new file");
  }
  if (a.engine.batch_pkts != b.engine.batch_pkts) {
    throw ConfigError("the batch size differs from the one that runs", b.where("engine.batch_pkts"),
                      "stop, then start with the new file");
  }
  const uint64_t needed = min_pool_pkts(next);
  if (pool_ != nullptr && needed > pool_->size_pkts()) {
    throw ConfigError("the pool of " + std::to_string(pool_->size_pkts()) +
                          " packets is too small: this pipeline can hold " + std::to_string(needed),
                      b.where("engine.pool_pkts"), "start with a larger engine.pool_pkts");
  }
}

// Workers stop between two runs, the last one to arrive does the work, then all continue: nobody waits for a
// thread that they could preempt. Shared workers have no thread and are held meanwhile.
void Engine::run_together(const std::vector<bool>& is_involved, const std::function<void()>& fn) {
  const TscClock& clock = TscClock::instance();
  stop_ns_.assign(workers_.size(), 0);
  std::vector<std::unique_ptr<Worker::Hold>> holds;
  std::vector<Worker*> threads;
  for (size_t w = 0; w < workers_.size(); ++w) {
    if (!is_involved[w]) continue;
    if (workers_[w]->options().is_shared) {
      holds.push_back(std::make_unique<Worker::Hold>(*workers_[w]));
    } else {
      threads.push_back(workers_[w].get());
    }
  }
  const auto n = static_cast<uint32_t>(threads.size());
  if (n == 0) return fn();
  std::atomic<uint32_t> arrived{0};
  std::atomic<bool> is_done{false};
  std::vector<std::unique_ptr<Worker::Ticket>> tickets;
  for (Worker* worker : threads) {
    tickets.push_back(std::make_unique<Worker::Ticket>());
    tickets.back()->fn = [&, worker] {
      const uint64_t begin_ns = clock.now_ns();
      if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == n) {
        fn();
        is_done.store(true, std::memory_order_release);
      }
      while (is_running_ && !is_done.load(std::memory_order_acquire)) _mm_pause();
      stop_ns_[worker->options().index] = clock.now_ns() - begin_ns;
    };
  }
  // A worker without tasks may be asleep: the others continue until it has arrived.
  std::vector<uint32_t> working;
  uint32_t n_resting = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (!threads[i]->tasks().empty()) {
      working.push_back(i);
    } else {
      threads[i]->post(*tickets[i]);
      ++n_resting;
    }
  }
  Patience patience;
  while (is_running_ && arrived.load(std::memory_order_acquire) < n_resting) patience.wait();
  for (const uint32_t i : working) threads[i]->post(*tickets[i]);
  for (const auto& ticket : tickets) {
    while (!ticket->is_done.load(std::memory_order_acquire)) patience.wait();
  }
}

void Engine::apply(std::unique_ptr<Graph> next) {
  check_apply(*next);
  next->spec.workers = graph_->spec.workers;
  for (Instance& instance : next->instances) {
    const auto it = graph_->index.find(instance.name);
    if (it == graph_->index.end()) continue;
    Instance& old_instance = graph_->instances[it->second];
    if (old_instance.info == instance.info) instance.module->inherit(*old_instance.module);
  }
  swap_in(std::move(next));
}

void Engine::swap_in(std::unique_ptr<Graph> next) {
  std::vector<std::unique_ptr<exec::FlowMeter>> meters = make_meters(*next);
  auto tap = std::make_unique<ControlTap>(*next, workers_);
  Swap swap(*graph_, *next, workers_, meters, *tap);
  const std::vector<bool>& is_involved = swap.is_involved();
  run_together(is_involved, [&] { swap.change_over_together(); });
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    if (!is_involved[w]) workers_[w]->execute([&] { swap.change_over(w); });
  }
  retire(*graph_, *next);
  std::swap(meters_, meters);
  collect_old_flows(meters, *next);
  graph_ = std::move(next);
  tap_ = std::move(tap);
  tap_->begin_arrivals();
  capture_order_ = capture_order(*graph_, workers_);
}

// Books the replaced graph's counts and the packets that it still holds. No worker touches it any more.
void Engine::retire(Graph& old_graph, Graph& next) {
  const PacketThread registered;
  // A queue also counts as kept if only one of its doors remains.
  const auto is_kept = [&](const Module* module) {
    return std::ranges::any_of(
        next.instances, [&](const Instance& instance) { return instance.works_on == module; });
  };
  for (const auto& task : old_graph.tasks) {
    if (task == nullptr) continue;
    for (const TaskInput& input : task->inputs) {
      if (input.counts_as_in) retired_in_pkts_ += input.pkts;
      RetiredInput& before = retired_inputs_[input.module->name()];
      before.totals.batches += input.batches;
      before.totals.pkts += input.pkts;
      before.cost += input.cost;
      for (size_t r = 0; r < input.drops.size(); ++r) {
        retired_drops_[{input.module->name(), static_cast<uint32_t>(r)}] += input.drops[r];
      }
    }
    uint64_t& dropped = retired_dropped_pkts_;
    dropped += task->executor->stats().dropped_pkts;
    for (const auto& left : task->leftovers.parts()) {
      task->leftovers.take(left.first, [&](Packet* pkt) {
        PacketPool::free_bulk(&pkt, 1);
        ++retired_drops_[{task->node_names[left.first->rank], kRemovedByApply.index()}];
        ++dropped;
      });
    }
    for (uint32_t rank = 0; rank < task->nodes.size(); ++rank) {
      ExecNode& node = task->nodes[rank];
      const std::string& name = task->node_names[rank];
      const auto it = next.index.find(name);
      const bool goes_on = it != next.index.end() && old_graph.index.contains(name) &&
                           next.instances[it->second].info == old_graph.at(name).info;
      uint64_t lost = node.queue->size_pkts;
      if (lost != 0) PacketPool::free_bulk(node.queue->pkts, node.queue->size_pkts);
      auto* const module = static_cast<Module*>(node.module);
      if (!is_kept(module)) {
        module->give_up_held([&](Packet* pkt) {
          PacketPool::free_bulk(&pkt, 1);
          ++lost;
        });
      }
      retired_drops_[{name, kRemovedByApply.index()}] += lost;
      dropped += lost;
      if (goes_on) continue;
      for (size_t r = 0; r < drop_reasons().size(); ++r) {
        retired_drops_[{name, static_cast<uint32_t>(r)}] += node.drops[r];
      }
    }
  }
  for (const auto& meter : meters_) retired_sent_pkts_ += meter->sent_pkts();
}

// Flows of the same name continue their counts; counts of other flows go to `other`, so that flows always add
// up to the packets sent.
void Engine::collect_old_flows(std::vector<std::unique_ptr<exec::FlowMeter>>& old_meters,
                               const Graph& next) {
  for (const auto& meter : old_meters) {
    meter->switch_epoch();
    flow_book_.collect(*meter);
  }
  exec::FlowBook book = make_book(next);
  for (uint32_t f = 0; f < graph_->flow_names.size(); ++f) {
    const auto it = std::ranges::find(next.flow_names, graph_->flow_names[f]);
    const bool goes_on = it != next.flow_names.end();
    const auto same = goes_on ? it : next.flow_names.end() - 1;
    const auto to = static_cast<uint32_t>(same - next.flow_names.begin());
    book.go_on(to, flow_book_, f, goes_on);
  }
  flow_book_ = std::move(book);
}

}  // namespace batchplane
