// SPDX-License-Identifier: BSD-3-Clause
// least_delays.h - lower bounds on delays under any triggers: where one exceeds its budget, the
// search is skipped.
#pragma once

#include <cstdint>
#include <vector>

#include "slo/model/budget.h"

namespace batchplane::slo {

class LeastDelays {
 public:
  // By flow, a delay in ns that no triggers go below; pinned modules hold nothing. Allocates only for a
  // program larger than any before.
  const std::vector<double>& find(const Program& program, const std::vector<uint8_t>& is_pinned);

 private:
  // The least that a module adds, each with the trigger that suits it best.
  struct Least {
    double pkt_ns = 0;  // to the time of a packet
    double path_ns =
        0;  // to the delay of a flow through it, beyond what that time adds to all flows
    double variance = 0;  // to the work of a run, per packet
  };
  struct Task {
    double pkt_ns = 0;         // the least time of a packet
    double variance = 0;       // the least of a run's work, per packet
    double waited_pkts = 0;    // packets whose time is part of each delay
    double turnaround_ns = 0;  // the least, as far as flows wait for it
  };
  void find_packet_times(const Program& program, const std::vector<uint8_t>& is_pinned);
  void find_waits(const Program& program);
  void find_paths(const Program& program, const std::vector<uint8_t>& is_pinned);
  void find_turnarounds(const Program& program);

  std::vector<Least> modules_;
  std::vector<Task> tasks_;
  std::vector<double> delays_ns_;  // by flow
};

}  // namespace batchplane::slo
