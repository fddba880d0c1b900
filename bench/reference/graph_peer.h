// SPDX-License-Identifier: BSD-3-Clause
// graph_peer.h - l2l3 written on DPDK's rte_graph: same burst, packets, tables and lookup path as
// ours.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace bench {

// One per process and number of next hops: rte_graph registers its nodes globally.
class GraphPeer {
 public:
  GraphPeer(uint32_t n_next_hops, uint32_t fib_size, bool is_random, const std::string& pool_name);
  ~GraphPeer();
  uint64_t run(uint32_t n_batches);
  std::string verify();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bench
