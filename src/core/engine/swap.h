// SPDX-License-Identifier: BSD-3-Clause
// swap.h - from one graph of running workers to the next: what each of them takes over, and which of
// them have to stand still together meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/control_tap.h"
#include "core/engine/worker.h"
#include "core/graph/graph.h"

namespace batchplane {

// Who runs its node; "" where nobody does. Of a queue, where it is filled.
std::string runner_of(const Graph& graph, const Instance& instance);
// Who polls it; null where nobody does.
const Task* poller_of(const Graph& graph, const Instance& queue);

// Made on the control thread, which holds both graphs for as long as it lives. Modules of the same name
// and kind go on: a kept one is the same object in both, another adopts its forerunner's state.
class Swap {
 public:
  // `meters`: of the next graph, by worker.
  Swap(Graph& from, Graph& to, const std::vector<std::unique_ptr<Worker>>& workers,
       const std::vector<std::unique_ptr<exec::FlowMeter>>& meters, ControlTap& tap);

  // Workers that give something to each other: they change over together, while all of them stand still.
  [[nodiscard]] const std::vector<bool>& is_involved() const { return is_involved_; }
  void change_over_together();
  // Any other, between two of its runs.
  void change_over(uint32_t worker);

 private:
  using PartLeft = exec::Leftovers<ExecNode, Packet*>::Part;
  struct Pair {
    const Instance* before;
    const Instance* after;
  };
  // What would go on at `first` and has no queue to wait in any more.
  struct Orphans {
    const Instance* queue;  // of the older graph
    std::vector<const Instance*>
        fillers;                // its nodes there, if it is gone; else its feeders change
    Task* from_task = nullptr;  // or: what an earlier swap has left there
    const ExecNode* from_first = nullptr;
    const Instance* first = nullptr;  // of the next graph
    uint64_t max_pkts = 0;
    PartLeft* into = nullptr;
  };
  struct Side {
    std::vector<Task*> tasks;  // of the next graph
    exec::FlowMeter* meter = nullptr;
    std::vector<Pair> pairs;  // whose node it runs from now on, in run order
  };

  void deal_tasks(const std::vector<std::unique_ptr<exec::FlowMeter>>& meters);
  void find_pairs();
  void add_unfinished(const Instance& at, const Instance& first);
  void add_unfinished_fillers(const Instance& queue, const Instance& first);
  void find_unfinished();
  void find_gone_queues();
  void find_changed_queues();
  void make_leftovers();
  void find_involved();
  void involve(const std::string& worker) { is_involved_[worker_index(worker)] = true; }
  void translate_states();
  [[nodiscard]] uint32_t worker_index(const std::string& name) const;
  [[nodiscard]] const Instance* forerunner(const Instance& after) const;

  void read_clocks(uint32_t worker);
  void carry(const Pair& pair);
  void carry_held(const Pair& pair);
  void collect(Orphans& orphans);
  void finish(uint32_t worker);

  Graph& from_;
  Graph& to_;
  const std::vector<std::unique_ptr<Worker>>& workers_;
  ControlTap& tap_;
  std::vector<Side> sides_;  // by worker
  std::vector<Orphans> orphans_;
  std::vector<bool> is_involved_;  // by worker
  std::vector<uint16_t> states_;   // by state of the older graph; empty: they are the same
  std::vector<std::vector<const ExecNode*>> counted_;  // by task and rank: who counted before
};

}  // namespace batchplane
