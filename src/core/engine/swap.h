// SPDX-License-Identifier: BSD-3-Clause
// swap.h - replaces the graph of running workers: what each worker takes over, and which workers have to stop
// together meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/control_tap.h"
#include "core/engine/worker.h"
#include "core/graph/graph.h"

namespace batchplane {

// Worker that runs the instance's node; for a queue, the one that fills it; "" if there is none.
std::string runner_of(const Graph& graph, const Instance& instance);
// Worker that polls the queue; "" if there is none.
std::string poller_of(const Graph& graph, const Instance& queue);

// Made on the control thread, which keeps both graphs alive meanwhile. Modules of the same name and kind
// continue: a kept module is the same object in both graphs, any other adopts its predecessor's state.
class Swap {
 public:
  // `meters`: of the next graph, by worker.
  Swap(Graph& from, Graph& to, const std::vector<std::unique_ptr<Worker>>& workers,
       const std::vector<std::unique_ptr<exec::FlowMeter>>& meters, ControlTap& tap);

  // Workers that hand something over to each other: they change over together, while all of them are stopped.
  [[nodiscard]] const std::vector<bool>& is_involved() const { return is_involved_; }
  void change_over_together();
  // Any other worker, between two of its runs.
  void change_over(uint32_t worker);

 private:
  using PartLeft = exec::Leftovers<ExecNode, Packet*>::Part;
  struct Pair {
    const Instance* before;
    const Instance* after;
  };
  // Packets that should continue at `first` but no longer have a queue to wait in.
  struct Orphans {
    const Instance* queue;  // of the older graph: gone, or its feeders change
    bool is_gone = false;
    std::vector<const Instance*> fillers;  // its nodes there that are gone, too
    Task* from_task = nullptr;             // or: leftovers of an earlier swap
    const ExecNode* from_first = nullptr;
    const Instance* held_at = nullptr;  // or: held where less has room now
    const Instance* first = nullptr;    // of the next graph
    uint64_t max_pkts = 0;
    PartLeft* into = nullptr;
  };
  struct Side {
    std::vector<Task*> tasks;  // of the next graph
    exec::FlowMeter* meter = nullptr;
    std::vector<Pair> pairs;  // nodes that it runs from now on, in run order
  };

  void deal_tasks(const std::vector<std::unique_ptr<exec::FlowMeter>>& meters);
  void find_pairs();
  void find_cut_queues();
  void add_unfinished(const Instance& at, const Instance& first);
  void add_unfinished_fillers(const Instance& queue, const Instance& first);
  void find_unfinished();
  void add_fillers(Orphans& orphans) const;
  void find_gone_queues();
  void find_changed_queues();
  void make_leftovers();
  void find_involved();
  void involve(const std::string& worker) {
    if (!worker.empty()) is_involved_[worker_index(worker)] = true;
  }
  void involve_if_moved(const std::string& before, const std::string& after);
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
  std::vector<uint16_t> states_;   // by state of the older graph; empty: unchanged
  std::vector<std::vector<const ExecNode*>> counted_;  // by task and rank: who counted before
};

}  // namespace batchplane
