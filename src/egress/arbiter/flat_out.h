// SPDX-License-Identifier: BSD-3-Clause
// flat_out.h - measures the packet rate of clients that send as fast as they can through a
// scheduler into a sink.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace batchplane::egress {

struct FlatOutSpec {
  // kArbiter: mailboxes and one scheduling thread. kLock: each client enqueues and dequeues under
  // one lock, like a Linux qdisc. kAlone: clients send without a scheduler.
  enum class Way : uint8_t { kArbiter, kLock, kAlone } way = Way::kArbiter;
  std::string discipline = "qfq";
  uint32_t flows = 32;       // of equal weight; packets of 60 bytes
  uint32_t clients = 1;      // client c sends flows c, c + clients, ..
  uint32_t at_once = 32;     // packets that a client hands over together; 1: uses the slot mailbox
  uint32_t dispatchers = 0;  // threads that feed the sink; 0: the scheduling thread does
  uint32_t dispatch_pkts = 32;  // packets handed to a dispatcher together
  // The sink copies each packet into a ring, as a NIC driver would; else it only counts.
  bool copies = false;
  uint64_t run_ns = 100'000'000;
  int arbiter_cpu = -1;              // of the scheduling thread; -1: any
  std::vector<int> other_cpus = {};  // of clients and dispatchers, in turn
};

struct FlatOutResult {
  uint64_t took_ns = 0;
  uint64_t released_pkts = 0;
  [[nodiscard]] double mpps() const {
    return static_cast<double>(released_pkts) * 1e3 / static_cast<double>(took_ns);
  }
};

// Throws ConfigError for an unknown discipline or sizes of 0, and std::runtime_error if packets
// were lost on the way.
FlatOutResult run_flat_out(const FlatOutSpec& spec);

}  // namespace batchplane::egress
