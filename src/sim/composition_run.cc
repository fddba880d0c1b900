// SPDX-License-Identifier: BSD-3-Clause
// composition_run.cc - how packets go through modules and buffers: the executor's rules, over
// packets that are numbers.
#include <algorithm>
#include <map>

#include "sim/composition.h"

namespace batchplane::sim {

// Earliest deadline first, each carried to its end before the next; deadlines count from the entry
// into the task.
void Composition::fire_expired(uint32_t task) {
  for (;;) {
    uint32_t due = kNowhere;
    double due_ns = worker_->read_ns;
    for (const uint32_t m : graph_->tasks[task]->modules) {
      const Node& node = nodes_[m];
      if (node.held.empty()) continue;
      double oldest_ns = node.held.front().entry_ns;
      for (const Pkt& pkt : node.held) oldest_ns = std::min(oldest_ns, pkt.entry_ns);
      const double deadline_ns = oldest_ns + node.age_limit_ns;
      if (deadline_ns > due_ns || (due != kNowhere && deadline_ns == due_ns)) continue;
      due = m;
      due_ns = deadline_ns;
    }
    if (due == kNowhere) return;
    while (!nodes_[due].held.empty()) {
      const size_t limit = spec_.pipeline.engine.batch_pkts;
      fire(due, std::min(nodes_[due].held.size(), limit), exec::Cause::kAge);
    }
    drain();
  }
}

void Composition::drain() {
  while (!ready_.empty()) {
    const uint32_t module = ready_.begin()->second;
    ready_.erase(ready_.begin());
    run_ready(module);
  }
}

void Composition::run_ready(uint32_t module) {
  Node& node = nodes_[module];
  const size_t limit = spec_.pipeline.engine.batch_pkts;
  if (node.count.trigger_pkts == 0) {
    Pkts held;
    held.swap(node.held);
    for (size_t done = 0; done < held.size(); done += limit) {
      const auto from = held.begin() + static_cast<std::ptrdiff_t>(done);
      const size_t n = std::min(held.size() - done, limit);
      execute(module, Pkts(from, from + static_cast<std::ptrdiff_t>(n)));
      read_clock_if_due();
    }
    return;
  }
  while (node.held.size() >= node.release_at_pkts) {
    const uint32_t n = node.release_at_pkts;
    node.release_at_pkts = node.count.trigger_pkts;
    fire(module, n, exec::Cause::kFull);
  }
}

void Composition::fire(uint32_t module, size_t n_pkts, exec::Cause cause) {
  Node& node = nodes_[module];
  exec::CauseCount& count = node.count.causes[static_cast<uint32_t>(cause)];
  count.firings += 1;
  count.pkts += n_pkts;
  worker_->clock_ns += spec_.loop.firing_ns;
  worker_->clock_ns += spec_.loop.firing_pkt_ns * static_cast<double>(n_pkts);
  const auto end = node.held.begin() + static_cast<std::ptrdiff_t>(n_pkts);
  Pkts pkts(node.held.begin(), end);
  node.held.erase(node.held.begin(), end);
  execute(module, std::move(pkts));
  read_clock_if_due();
}

void Composition::deliver(uint32_t from, uint32_t gate, Pkts pkts, bool may_run) {
  const bool is_drop = gate == exec::kDropGate;
  const Node& node = nodes_[from];
  if (!is_drop && gate >= node.to.size()) return;
  const uint32_t to = is_drop ? node.drop_to : node.to[gate];
  if (to == kNowhere || pkts.empty()) return;
  for (Pkt& pkt : pkts) pkt.path_state = graph_->paths->next(from, gate, pkt.path_state);
  arrive(to, std::move(pkts), may_run);
}

// They go through, wait for their turn, or are collected.
void Composition::arrive(uint32_t to, Pkts pkts, bool may_run) {
  Node& node = nodes_[to];
  if (may_run && is_direct(node) && node.held.empty()) {
    execute(to, std::move(pkts));
    read_clock_if_due();
    return;
  }
  node.held.insert(node.held.end(), pkts.begin(), pkts.end());
  if (node.count.trigger_pkts == 0) {
    ready_.insert({node.rank, to});
    return;
  }
  node.count.arrived_batches += 1;
  node.count.arrived_pkts += pkts.size();
  if (node.held.size() >= node.release_at_pkts) ready_.insert({node.rank, to});
}

void Composition::charge(Node& node, size_t n_pkts) {
  const exec::ModuleCost& law = node.module->cost;
  const double law_ns = law.cost_per_batch_ns + law.cost_per_pkt_ns * static_cast<double>(n_pkts);
  const std::vector<uint64_t>& table = node.module->table;
  worker_->clock_ns += n_pkts < table.size()
                           ? static_cast<double>(table[n_pkts]) / static_cast<double>(kTicksPerNs)
                           : law_ns;
  worker_->unread_ns += law_ns;
  node.count.batches += 1;
  node.count.pkts += n_pkts;
}

void Composition::execute(uint32_t module, Pkts pkts) {
  Node& node = nodes_[module];
  charge(node, pkts.size());
  switch (node.module->role) {
    case Role::kRoute:
    case Role::kInTurn:
    case Role::kRandom:
      return split(module, std::move(pkts));
    case Role::kPass:
    case Role::kInput:
      if (node.module->may_drop) drop_ended(module, pkts);
      return deliver(module, 0, std::move(pkts), true);
    case Role::kEgress:
      return leave(node, pkts);
    case Role::kQueue:
      worker_->clock_ns += spec_.loop.hop_pkt_ns * static_cast<double>(pkts.size());
      for (Pkt& pkt : pkts) pkt.spent_ns += worker_->clock_ns - pkt.entry_ns;
      node.ring.insert(node.ring.end(), pkts.begin(), pkts.end());
      return;
    case Role::kDrop:
    case Role::kDeadEnd:
      return;
  }
}

void Composition::leave(Node& node, const Pkts& pkts) {
  worker_->clock_ns += spec_.loop.egress_pkt_ns * static_cast<double>(pkts.size());
  exec::FlowMeter& meter = *worker_->meter;
  if (meter.is_nearly_full(static_cast<uint32_t>(pkts.size()))) {
    meter.flush(static_cast<uint64_t>(worker_->read_ns));
  }
  for (const Pkt& pkt : pkts) {
    meter.record(graph_->paths->flow_at(node.module->index, pkt.path_state), 1,
                 static_cast<uint64_t>(pkt.entry_ns - pkt.spent_ns));
  }
}

void Composition::drop_ended(uint32_t module, Pkts& pkts) {
  Node& node = nodes_[module];
  const auto ends = [&](const Pkt& pkt) {
    return node.module->gate_of_flow[pkt.flow] == Module::kDropMark;
  };
  for (const Pkt& pkt : pkts) {
    if (!ends(pkt)) continue;
    ++node.count.dropped_pkts;
    deliver(module, exec::kDropGate, {pkt}, false);
  }
  std::erase_if(pkts, ends);
}

void Composition::split(uint32_t module, Pkts pkts) {
  Node& node = nodes_[module];
  const bool may_drop = node.module->may_drop;
  if (may_drop) drop_ended(module, pkts);
  std::map<uint32_t, Pkts> parts;
  for (const Pkt& pkt : pkts) parts[gate_of(node, pkt.flow)].push_back(pkt);
  if (parts.size() > 1 && !may_drop) {
    worker_->clock_ns += spec_.loop.split_branch_ns * static_cast<double>(parts.size() - 1) +
                         spec_.loop.split_pkt_ns * static_cast<double>(pkts.size());
  }
  for (auto& [gate, part] : parts) deliver(module, gate, std::move(part), true);
}

uint32_t Composition::gate_of(Node& node, uint32_t flow) {
  Module& module = *node.module;
  uint32_t gate = 0;
  if (module.role == Role::kInTurn) {
    gate = module.turn;
    module.turn = static_cast<uint16_t>(module.turn + 1 == module.n_gates ? 0 : module.turn + 1);
  } else if (module.role == Role::kRandom) {
    gate = module.weights != nullptr ? module.weights->pick(module.rng.next())
                                     : module.rng.below(module.n_gates);
  } else {
    gate = module.gate_of_flow[flow];
  }
  // Merged packets also come to places that know no way for their flow.
  const bool is_lost = merged_.module != kNowhere && gate >= node.to.size();
  const bool is_merged = merged_.module == module.index && merged_.gate == gate;
  return is_merged || is_lost ? sibling_of(node, gate) : gate;
}

uint32_t Composition::sibling_of(Node& node, uint32_t gate) {
  for (size_t i = 0; i < node.to.size(); ++i) {
    node.turn = node.turn + 1 < node.to.size() ? node.turn + 1 : 0;
    const bool is_merged = merged_.module == node.module->index && merged_.gate == node.turn;
    if (node.to[node.turn] != kNowhere && !is_merged) return node.turn;
  }
  return gate;
}

}  // namespace batchplane::sim
