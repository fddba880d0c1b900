// SPDX-License-Identifier: BSD-3-Clause
// route_walk.h - carries one packet through a graph's own modules and notes where each sent it.
//
// No worker runs and nothing is buffered: each module sees a batch of one. Where a splitter does
// not look at packets, all its gates are followed with copies, so that what lies behind is covered.
// Tasks have no loops, so that within one task a packet meets a module once. Behind a queue (an
// error that is sent back, say) it may meet it again: the first result counts, and a different one
// is told.
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

// One ending that packets of a route may come to.
struct Way {
  std::vector<std::string> path;  // modules, from the input on
  std::string flow;               // that it is metered as; empty when it is not sent
  std::string drop_reason;
  bool is_kept = false;  // by the last module of the path
};

struct Route {
  // Splitters, and modules that drop: gate or kDropGate. Packet schedulers: the number of its flow.
  std::map<std::string, uint32_t> gates;
  std::vector<Way> ways;  // several where a splitter does not look at packets
};

// Control thread, while nothing else runs the graph.
class RouteWalk {
 public:
  // `pool` has kPoolPkts packets for the longest frame. Lets modules do once what timers do.
  RouteWalk(Graph& graph, PacketPool& pool);
  ~RouteWalk();
  RouteWalk(const RouteWalk&) = delete;
  RouteWalk& operator=(const RouteWalk&) = delete;

  // Packets that the walk, and what modules keep and make of one packet, need at most.
  static constexpr uint32_t kPoolPkts = 4096;

  // `frame` comes in by `input` (an input module) on the interface of that index. `name` is for
  // warnings. Each packet comes long after the last one, as the first of its flow: buckets are
  // full again.
  Route walk(uint32_t input, uint16_t in_interface, const std::vector<uint8_t>& frame,
             const std::string& name);

  // Splitters met that do not look at packets, and each gate's share.
  [[nodiscard]] const std::map<std::string, std::vector<double>>& free() const { return free_; }
  // Packet schedulers met: their gates are numbers of flows.
  [[nodiscard]] const std::set<std::string>& schedulers() const { return schedulers_; }
  // What routes do not show, a line each.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  enum class Fate : uint8_t { kGoesOn, kDropped, kKept, kTaken };
  struct Outcome {
    Fate fate = Fate::kGoesOn;
    Packet* pkt = nullptr;  // where it goes on, or was dropped
    uint32_t gate = 0;
    uint16_t reason = 0;
  };
  using PathState = uint16_t;

  void follow(Packet* pkt, uint32_t at, PathState state);
  void fork(Packet* pkt, uint32_t at, PathState state, const std::vector<double>& weights);
  // One step: false when the way has ended there; else `at` and `state` are the next module's.
  bool step(Packet*& pkt, uint32_t& at, PathState& state);
  Outcome pass(Packet* pkt, uint32_t at);
  Outcome settle(Packet* pkt, bool is_in_batch);
  // Number of the stop, and whether no packet was there before.
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

  // Of the route under way.
  std::string name_;
  Route route_;
  std::vector<std::string> path_;
  std::map<uint32_t, uint32_t> first_gates_;  // in-place modules that let the packet pass: gate 0
  static constexpr uint32_t kNowhere = ~0U;
  struct Stop {
    std::vector<uint32_t> from;  // stops before it
    bool can_end = false;        // here, or from here on
  };
  std::map<std::string, uint32_t> seen_;  // module, path state and packet -> stop
  std::vector<Stop> stops_;
  uint32_t from_ = kNowhere;                                          // the stop that is left
  std::vector<std::pair<uint32_t, std::vector<std::string>>> loops_;  // come back to, and how
  std::set<uint32_t> keepers_;
};

}  // namespace batchplane::app
