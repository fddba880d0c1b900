// SPDX-License-Identifier: BSD-3-Clause
// swap.h - moves a simulation from one graph to the next, as core/engine/swap.h does for the
// engine: state and held packets of each node, and leftover packets to be run before anything is
// polled.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/graph.h"

namespace batchplane::sim {

// Both graphs must outlive it.
class Swap {
 public:
  Swap(Graph& from, Graph& to);

  // Workers that hand over or receive anything.
  [[nodiscard]] std::vector<bool> involved() const;
  // To be called once the tasks of the next graph have their executors.
  void carry();

 private:
  struct Place {
    Task* task = nullptr;
    uint32_t rank = 0;
    [[nodiscard]] Node& node() const { return task->nodes[rank]; }
  };
  // Packets waiting where nobody will poll them any more.
  struct Source {
    Queue* queue = nullptr;         // gone, or filled from elsewhere than before
    std::vector<uint32_t> fillers;  // modules that fill it and are gone: their buffers go with it
    Task* task = nullptr;           // or: leftovers of an earlier move
    const Node* first = nullptr;    // there
    Node* held_at = nullptr;        // or: packets for which the node has no room any more
  };
  using Senders = std::map<std::string, uint32_t>;  // by module and ring: a worker

  void carry_node(uint32_t before, uint32_t after);
  void carry_inputs();
  void carry_stats(const Task& old);
  void find_unfinished();
  void find_emptied(bool is_gone);
  void add_emptied(const Module& module, bool is_gone);
  void add_unfinished(uint32_t module, std::vector<Source>* into) const;
  void collect_leftovers();
  void take_all(const Source& source, std::vector<Packet*>& into);
  [[nodiscard]] std::vector<Source>* sources_at(const std::string& module);
  [[nodiscard]] uint16_t only_state(uint32_t module) const;
  [[nodiscard]] Senders senders_of(const Graph& graph, const std::vector<Place>& places,
                                   const Queue* queue) const;
  [[nodiscard]] const Module& first_of(const Queue& queue) const;
  [[nodiscard]] bool is_emptied(const Queue& queue) const;

  Graph& from_;
  Graph& to_;
  std::vector<Place> before_;  // by module
  std::vector<Place> after_;
  std::map<std::pair<uint32_t, int>, std::vector<Source>>
      sources_;  // by task, and rank from behind
};

}  // namespace batchplane::sim
