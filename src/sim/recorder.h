// SPDX-License-Identifier: BSD-3-Clause
// recorder.h - records single events: releases and executions of modules, and the path of single
// packets.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/node.h"
#include "sim/packet.h"

namespace batchplane::sim {

// One execution of a module on a batch. `cause`: exec::Cause, or kNoCause.
struct Execution {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t module = 0;
  uint32_t batch_pkts = 0;
  uint8_t cause = exec::kNoCause;
};

struct PacketRecord {
  uint32_t flow = 0;  // traffic flow
  uint64_t entry_ns = 0;
  uint64_t poll_ns = 0;  // taken out of the ring
  uint64_t exit_ns = 0;  // 0 while under way
  bool is_dropped = false;
};

// One module on the path of one packet.
struct Hop {
  uint32_t packet = 0;
  uint32_t module = 0;
  uint64_t arrive_ns = 0;  // in the module's buffer or queue; start_ns if it was passed by pointer
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t batch_pkts = 0;
};

// Time that packets had spent in their task when a module's buffer released them.
struct ReleaseAges {
  uint64_t releases = 0;
  uint64_t pkts = 0;
  uint64_t worst_ns = 0;
};

// Owner: one simulation. Recording stops at its limits.
class Recorder {
 public:
  void limit(uint64_t max_packets, uint64_t max_executions) {
    max_packets_ = max_packets;
    max_executions_ = max_executions;
  }
  [[nodiscard]] bool wants_packets() const { return packets.size() < max_packets_; }
  [[nodiscard]] bool has_packets() const { return !packets.empty(); }
  [[nodiscard]] bool is_on() const {
    return max_packets_ != 0 || max_executions_ != 0 || !ages.empty();
  }

  // Records ages at release from now on, for modules 0 .. n_modules - 1.
  void watch_ages(size_t n_modules) { ages.assign(n_modules, {}); }

  void add_execution(const Execution& execution) {
    if (executions.size() < max_executions_) executions.push_back(execution);
  }
  // Returns the number of a new packet, or kUntraced once there are enough.
  uint32_t add_packet(const PacketRecord& record) {
    if (!wants_packets()) return kUntraced;
    packets.push_back(record);
    arrived_.push_back(exec::kNeverNs);
    return static_cast<uint32_t>(packets.size() - 1);
  }
  void note_arrival(uint32_t packet, uint64_t now_ns) { arrived_[packet] = now_ns; }
  void add_hop(Hop hop) {
    uint64_t& arrived_ns = arrived_[hop.packet];
    hop.arrive_ns = arrived_ns == exec::kNeverNs ? hop.start_ns : arrived_ns;
    arrived_ns = exec::kNeverNs;
    hops.push_back(hop);
  }

  std::vector<Execution> executions;
  std::vector<PacketRecord> packets;
  std::vector<Hop> hops;
  std::vector<ReleaseAges> ages;  // per module; empty while not recorded

 private:
  uint64_t max_packets_ = 0;
  uint64_t max_executions_ = 0;
  std::vector<uint64_t> arrived_;  // per packet: in the queue where it waits, or kNeverNs
};

}  // namespace batchplane::sim
