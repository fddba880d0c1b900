// SPDX-License-Identifier: BSD-3-Clause
// virtual_arbiter.h - an arbiter whose rounds take time, with mailboxes before it and a bus behind it, in
// virtual time. Scheduler, link and rounds are the real ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "egress/arbiter/replay.h"
#include "egress/discipline/discipline.h"

namespace batchplane::egress {

struct VirtualSpec {
  std::string discipline = "qfq";
  std::vector<FlowParams> flows;
  std::vector<uint32_t> client_of_flow;  // whose mailbox the flow's packets come by
  uint32_t mailbox_pkts = 512;
  // A round takes round_ns, mailbox_ns for each mailbox that is read, and both costs of a packet.
  uint64_t round_ns = 100;
  uint64_t mailbox_ns = 3;
  uint64_t take_pkt_ns = 15;
  uint64_t release_pkt_ns = 15;
  uint32_t take_pkts = 64;        // that a round takes from one mailbox at most
  uint32_t release_pkts = 32;     // that it releases at most
  bool has_backpressure = true;   // clients drop packets of full queues themselves
  uint64_t read_interval_ns = 0;  // a mailbox is read at most so often
  uint64_t rate_bps = 0;          // of the link; 0: no limit
  // As a qdisc under one lock: each packet is put in and the next one taken out at once. Packets wait for
  // the lock in their mailbox, first come first served.
  bool is_immediate = false;
  // Behind the scheduler: a stage that serves one packet in bus_pkt_ns, in turn from a ring for each
  // queue (flow modulo their number). 0: there is none.
  uint64_t bus_pkt_ns = 0;
  uint32_t bus_queues = 1;
  uint32_t bus_ring_pkts = 256;  // what does not fit is lost
};

// kShed: by the client, since the flow's queue was full.
enum class Fate : uint8_t { kSent, kMailboxFull, kRefused, kShed, kBusFull };

struct VirtualResult {
  // By arrival.
  std::vector<Fate> fates;
  std::vector<uint64_t> release_ns;  // by the scheduler
  std::vector<uint64_t> done_ns;     // by the bus; without one, the same
  // By round in which something was done.
  std::vector<uint32_t> round_pkts;  // taken and released
  std::vector<uint64_t> round_took_ns;
};

// `arrivals` are ordered by time. Ends when all has left. Throws ConfigError for an unknown discipline,
// parameters that it refuses, or arrivals out of order.
VirtualResult run_virtual(const VirtualSpec& spec, const std::vector<Arrival>& arrivals);

}  // namespace batchplane::egress
