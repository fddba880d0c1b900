// SPDX-License-Identifier: BSD-3-Clause
// engine_apply.cc - replaces the graph of running workers between two runs.
#include <algorithm>
#include <optional>

#include "core/engine/capture_order.h"
#include "core/engine/engine.h"

namespace batchplane {
namespace {

const DropReason kRemovedByApply{"removed_by_apply",
                                 "the packet was held by a module that an apply removed",
                                 "set the trigger to 0 before removing a module"};

// The state of the new automaton that stands for the same flows, by name; the empty set else.
std::vector<uint16_t> translate_states(const Graph& from, const Graph& to) {
  std::vector<uint16_t> map(from.paths->n_states(), 0);
  std::map<std::vector<std::string>, uint16_t> by_names;
  const auto names_of = [](const Graph& graph, uint16_t state) {
    std::vector<std::string> names;
    for (const uint32_t f : graph.paths->flows_of(state)) names.push_back(graph.flow_names[f]);
    std::ranges::sort(names);
    return names;
  };
  for (uint32_t s = 0; s < to.paths->n_states(); ++s)
    by_names[names_of(to, static_cast<uint16_t>(s))] = static_cast<uint16_t>(s);
  const uint16_t nobody = by_names.contains({}) ? by_names[{}] : 0;
  for (uint32_t s = 0; s < map.size(); ++s) {
    const auto it = by_names.find(names_of(from, static_cast<uint16_t>(s)));
    map[s] = it == by_names.end() ? nobody : it->second;
  }
  return map;
}

struct Pair {
  const Instance* old_instance;
  const Instance* next_instance;
  bool old_is_static;
  uint16_t old_state;
};

// Every node with the one whose counts it goes on with, or null. In rank order: what a node has
// counted follows from its predecessors where batches pass by pointer.
using CountedNodes = std::vector<std::pair<ExecNode*, const ExecNode*>>;
CountedNodes counted_nodes(Graph& next, const std::vector<Pair>& pairs) {
  CountedNodes counted;
  for (const auto& task : next.tasks) {
    if (task == nullptr) continue;
    for (ExecNode& node : task->nodes) {
      const auto pair =
          std::ranges::find(pairs, &node, [](const Pair& p) { return p.next_instance->node; });
      counted.emplace_back(&node, pair == pairs.end() ? nullptr : pair->old_instance->node);
    }
  }
  return counted;
}

void adopt_counts(ExecNode& node, const ExecNode& old_node) {
  node.cost = old_node.cost;
  node.dropped_pkts = old_node.dropped_pkts;
  for (size_t r = 0; r < drop_reasons().size(); ++r) {
    node.drops[r] = old_node.drops[r];
    node.handed_on[r] = old_node.handed_on[r];
  }
  CoreQueue& queue = *node.queue;
  const CoreQueue& old_queue = *old_node.queue;
  queue.late_releases = old_queue.late_releases;
  queue.arrived_batches = old_queue.arrived_batches;
  queue.arrived_pkts = old_queue.arrived_pkts;
  for (uint32_t c = 0; c < exec::kCauses; ++c) queue.causes[c] = old_queue.causes[c];
}

CoreExecutor* executor_of(Graph& graph, const ExecNode* node) {
  for (const auto& task : graph.tasks) {
    if (task != nullptr && node >= task->nodes.data() &&
        node < task->nodes.data() + task->nodes.size()) {
      return task->executor.get();
    }
  }
  return nullptr;
}

std::string worker_of(const Graph& graph, const Instance& instance) {
  const Task* const task = graph.tasks[instance.task].get();
  return task == nullptr ? "" : task->worker;
}

// Of a queue, who polls it; "" of modules that nobody polls.
std::string poller_of(const Graph& graph, const Instance& instance) {
  for (const auto& task : graph.tasks) {
    if (task == nullptr) continue;
    const bool polls = std::ranges::any_of(task->inputs, [&](const TaskInput& input) {
      return input.module == instance.module.get();
    });
    if (polls) return task->worker;
  }
  return "";
}

std::optional<Difference::Move> move_of(const std::string& module, const Graph& from,
                                        const Graph& to) {
  const Instance& before = from.instances[from.index.at(module)];
  const Instance& after = to.instances[to.index.at(module)];
  for (const auto& who : {worker_of, poller_of}) {
    Difference::Move move{module, who(from, before), who(to, after)};
    if (move.from != move.to) return move;
  }
  return std::nullopt;
}

bool has_same_buffer(const ModuleSpec& a, const ModuleSpec& b) {
  return a.trigger_pkts == b.trigger_pkts && a.age_limit_ns == b.age_limit_ns &&
         a.weight == b.weight && a.queue_pkts == b.queue_pkts;
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
    // Parameters as they were given: those that run have every default and all table entries.
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

// All workers stop between two runs, the last to arrive does the work, all go on: no thread that
// could be preempted by them is waited for. Shared ones have no thread, and are held meanwhile.
void Engine::run_on_all(const std::function<void()>& fn) {
  std::vector<std::unique_ptr<Worker::Hold>> holds;
  std::vector<Worker*> threads;
  for (const auto& worker : workers_) {
    if (worker->options().is_shared) {
      holds.push_back(std::make_unique<Worker::Hold>(*worker));
    } else {
      threads.push_back(worker.get());
    }
  }
  const auto n = static_cast<uint32_t>(threads.size());
  if (!is_running_ || n == 1) {
    threads.front()->execute(fn);
    return;
  }
  std::atomic<uint32_t> arrived{0};
  std::atomic<bool> is_done{false};
  std::vector<std::unique_ptr<Worker::Ticket>> tickets;
  for (Worker* worker : threads) {
    tickets.push_back(std::make_unique<Worker::Ticket>());
    tickets.back()->fn = [&] {
      if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == n) {
        fn();
        is_done.store(true, std::memory_order_release);
      }
      while (!is_done.load(std::memory_order_acquire)) _mm_pause();
    };
    worker->post(*tickets.back());
  }
  for (const auto& ticket : tickets) {
    while (!ticket->is_done.load(std::memory_order_acquire)) std::this_thread::yield();
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
  std::vector<std::unique_ptr<exec::FlowMeter>> meters = make_meters(*next);
  std::vector<exec::FlowMeter*> raw;
  std::vector<std::vector<Task*>> dealt(workers_.size());
  for (size_t i = 0; i < workers_.size(); ++i) {
    raw.push_back(meters[i].get());
    for (const auto& task : next->tasks) {
      if (task == nullptr || task->worker != workers_[i]->options().name) continue;
      task->attach(workers_[i]->context(), workers_[i]->clock(), *meters[i]);
      dealt[i].push_back(task.get());
    }
  }
  std::vector<uint16_t> states = translate_states(*graph_, *next);
  std::vector<Pair> pairs;
  for (const Instance& instance : next->instances) {
    const auto it = graph_->index.find(instance.name);
    if (it == graph_->index.end() || graph_->instances[it->second].info != instance.info) continue;
    const auto& at = graph_->paths->states_at(it->second);
    pairs.push_back({&graph_->instances[it->second], &instance, at.size() == 1,
                     at.empty() ? uint16_t{0} : *at.begin()});
  }
  // In run order: the counts of a node depend on those before it.
  std::ranges::stable_sort(pairs, {}, [](const Pair& pair) {
    return pair.next_instance->node == nullptr ? 0 : pair.next_instance->node->rank;
  });
  const CountedNodes counted = counted_nodes(*next, pairs);
  auto tap = std::make_unique<ControlTap>(*next, workers_);
  run_on_all([&] {
    for (const auto& worker : workers_) {
      for (Task* task : worker->tasks()) task->executor->read_clock();
    }
    for (const Pair& pair : pairs) {
      pair.next_instance->module->adopt(*pair.old_instance->module);
      ExecNode* node = pair.next_instance->node;
      ExecNode* old_node = pair.old_instance->node;
      if (node == nullptr || old_node == nullptr) continue;
      adopt_counts(*node, *old_node);
      CoreQueue& held = *old_node->queue;
      for (uint32_t i = 0; i < held.size_pkts; ++i) {
        const uint16_t state =
            pair.old_is_static ? pair.old_state : held.pkts[i]->meta().path_state;
        held.pkts[i]->meta().path_state = states[state < states.size() ? state : 0];
      }
      executor_of(*next, node)->adopt_held(*node, held);
    }
    for (const auto& [node, old_node] : counted) {
      executor_of(*next, node)
          ->set_totals(*node, old_node == nullptr
                                  ? exec::NodeTotals{}
                                  : executor_of(*graph_, old_node)->totals(*old_node));
    }
    for (size_t i = 0; i < workers_.size(); ++i) {
      workers_[i]->set_tasks(std::move(dealt[i]), raw[i]);
      workers_[i]->set_idle_hold(next->spec.engine.is_idle_hold);
    }
    tap->begin_rings();
  });
  retire(*graph_, *next);
  std::swap(meters_, meters);
  collect_old_flows(meters, *next);
  graph_ = std::move(next);
  tap_ = std::move(tap);
  tap_->begin_arrivals();
  capture_order_ = capture_order(*graph_, workers_);
}

// Books what the replaced graph had counted and what it still holds. No worker touches it any more.
void Engine::retire(Graph& old_graph, Graph& next) {
  const PacketThread registered;
  for (const auto& task : old_graph.tasks) {
    if (task == nullptr) continue;
    for (const TaskInput& input : task->inputs) {
      if (input.counts_as_in) retired_in_pkts_ += input.pkts;
      exec::NodeTotals& before = retired_inputs_[input.module->name()];
      before.batches += input.batches;
      before.pkts += input.pkts;
      for (size_t r = 0; r < input.drops.size(); ++r) {
        retired_drops_[{input.module->name(), static_cast<uint32_t>(r)}] += input.drops[r];
      }
    }
    uint64_t& dropped = retired_dropped_pkts_;
    dropped += task->executor->stats().dropped_pkts;
    for (uint32_t rank = 0; rank < task->nodes.size(); ++rank) {
      ExecNode& node = task->nodes[rank];
      const std::string& name = task->node_names[rank];
      const auto it = next.index.find(name);
      const bool goes_on = it != next.index.end() && old_graph.index.contains(name) &&
                           next.instances[it->second].info == old_graph.at(name).info;
      uint64_t lost = node.queue->size_pkts;
      if (lost != 0) PacketPool::free_bulk(node.queue->pkts, node.queue->size_pkts);
      static_cast<Module*>(node.module)->give_up_held([&](Packet* pkt) {
        PacketPool::free_bulk(&pkt, 1);
        ++lost;
      });
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

// Flows of the same name go on with what they had; what others had counts as `other`, so that flows
// always add up to what was sent.
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
