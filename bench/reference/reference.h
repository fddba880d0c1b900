// SPDX-License-Identifier: BSD-3-Clause
// reference.h - the packet work of l2l3 in one hand-inlined loop, without any engine: the limit to
// compare with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace bench {

// Same source burst, packets, tables and lookup path as the engine's l2l3; splits by next hop and
// batches alike, but has no queues, statistics, flows, clocks, buffers or bounds checks of its own.
class Reference {
 public:
  Reference(uint32_t n_next_hops, uint32_t fib_size, bool is_random, const std::string& pool_name);
  ~Reference();
  uint64_t run(uint32_t n_batches);
  // Checks one burst byte by byte: TTL, MACs, checksum.
  std::string verify();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bench
