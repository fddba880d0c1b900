// SPDX-License-Identifier: BSD-3-Clause
// route_walk.h - carries one packet through a graph's own modules and notes where each sent it.
//
// No worker runs and nothing is buffered: each module sees batches of one. Where a splitter chooses without
// looking at the packet, all its gates are followed with copies, so that everything behind it is covered.
// Tasks have no loops, so a packet meets a module only once within a task. Behind a queue (with an ICMP
// error, for example) it may meet it again: the first result counts, and a different one is reported.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/packet/packet_pool.h"

namespace batchplane::app {

// One of the ways that packets of a route may take.
struct Way {
  std::vector<std::string> path;  // modules, from the input on
  std::string flow;               // as which it is metered; empty when it is not sent
  std::string drop_reason;
  bool is_kept = false;  // by the last module of the path
};

struct Route {
  // For splitters and modules that drop: gate or kDropGate. For packet schedulers, and modules that know their
  // flows (pace, early_drop): the flow's number.
  std::map<std::string, uint32_t> gates;
  std::vector<Way> ways;  // several where a splitter chooses blindly
};

// Control thread, while nothing else runs the graph.
class RouteWalk {
 public:
  // `pool` has kPoolPkts packets for the longest frame. Calls the modules' timers once.
  RouteWalk(Graph& graph, PacketPool& pool);
  ~RouteWalk();
  RouteWalk(const RouteWalk&) = delete;
  RouteWalk& operator=(const RouteWalk&) = delete;

  // Maximum number of packets for the walk, and for what modules keep and make of one packet.
  static constexpr uint32_t kPoolPkts = 4096;

  // `frame` arrives at `input` (an input module) on the interface of that index. `name` is for warnings. Each
  // packet arrives long after the previous one, as the first of its flow: token buckets are full again.
  Route walk(uint32_t input, uint16_t in_interface, const std::vector<uint8_t>& frame,
             const std::string& name);

  // Splitters on the way that choose blindly, and each gate's share.
  [[nodiscard]] const std::map<std::string, std::vector<double>>& free() const { return free_; }
  // Packet schedulers on the way: their gates are flow numbers.
  [[nodiscard]] const std::set<std::string>& schedulers() const { return schedulers_; }
  // What the routes do not show, one line each.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  enum class Fate : uint8_t { kGoesOn, kDropped, kKept, kTaken };
  struct Outcome {
    Fate fate = Fate::kGoesOn;
    Packet* pkt = nullptr;  // the packet that continues, or was dropped
    uint32_t gate = 0;
    uint16_t reason = 0;
  };
  using PathState = uint16_t;

  void follow(Packet* pkt, uint32_t at, PathState state);
  void fork(Packet* pkt, uint32_t at, PathState state, const std::vector<double>& weights);
  // One step: false when the way ends there; otherwise `at` and `state` are those of the next module.
  bool step(Packet*& pkt, uint32_t& at, PathState& state);
  Outcome pass(Packet* pkt, uint32_t at);
  Outcome settle(Packet* pkt, bool is_in_batch);
  // Index of the stop, and whether it is new.
  std::pair<uint32_t, bool> stop_of(Packet& pkt, uint32_t at, PathState state);
  void tell_loops();
  void note_gate(uint32_t at, uint32_t gate);
  void note_scheduled(const Instance& here, Packet& pkt);
  void end_way(Way way);
  void warn(const std::string& text);
  Packet* new_packet();
  Packet* copy_of(Packet& pkt);
  [[nodiscard]] const LinkedEdge* edge_of(uint32_t at, uint32_t gate) const;

  Graph& graph_;
  std::map<std::pair<uint32_t, uint32_t>, LinkedEdge> edges_;  // (instance, gate)
  std::unique_ptr<Context> ctx_;
  std::unique_ptr<exec::FlowMeter> meter_;
  std::map<std::string, std::vector<double>> free_;
  std::set<std::string> schedulers_;

  struct Warned {
    std::string first;  // route
    std::set<std::string> routes;
  };
  std::map<std::string, Warned> warned_;

  // State of the current route.
  std::string name_;
  Route route_;
  std::vector<std::string> path_;
  std::map<uint32_t, uint32_t> first_gates_;  // in-place modules that passed the packet on: gate 0
  static constexpr uint32_t kNowhere = ~0U;
  struct Stop {
    std::vector<uint32_t> from;  // previous stops
    bool can_end = false;        // the packet can leave here or further on
  };
  std::map<std::string, uint32_t> seen_;  // module, path state and packet -> stop
  std::vector<Stop> stops_;
  uint32_t from_ = kNowhere;                                          // the previous stop
  std::vector<std::pair<uint32_t, std::vector<std::string>>> loops_;  // stop, and path to it
  std::set<uint32_t> keepers_;
};

}  // namespace batchplane::app
