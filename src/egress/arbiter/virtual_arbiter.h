// SPDX-License-Identifier: BSD-3-Clause
// virtual_arbiter.h - an arbiter whose rounds take time, with mailboxes in front and a bus behind,
// in virtual time. Scheduler, link and rounds are the real code.
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
  std::vector<uint32_t> client_of_flow;  // client whose mailbox carries the flow's packets
  uint32_t mailbox_pkts = 512;
  // A round takes round_ns, plus mailbox_ns per mailbox read, plus both costs of each packet.
  uint64_t round_ns = 100;
  uint64_t mailbox_ns = 3;
  uint64_t take_pkt_ns = 15;
  uint64_t release_pkt_ns = 15;
  uint32_t take_pkts = 64;        // most packets per round from one mailbox
  uint32_t release_pkts = 32;     // most packets released per round
  bool has_backpressure = true;   // clients drop packets of flows with full queues themselves
  uint64_t read_interval_ns = 0;  // minimum time between reads of a mailbox
  uint64_t rate_bps = 0;          // of the link; 0: no limit
  // As a qdisc under one lock: each packet is enqueued, and the next one dequeued at once. Packets
  // wait in their mailboxes for the lock, first come, first served.
  bool is_immediate = false;
  // A stage behind the scheduler serves one packet per bus_pkt_ns, round robin over one ring per
  // queue (flow modulo bus_queues). 0: no such stage.
  uint64_t bus_pkt_ns = 0;
  uint32_t bus_queues = 1;
  uint32_t bus_ring_pkts = 256;  // packets that do not fit are lost
};

// kShed: dropped by the client because the flow's queue was full.
enum class Fate : uint8_t { kSent, kMailboxFull, kRefused, kShed, kBusFull };

struct VirtualResult {
  // By arrival.
  std::vector<Fate> fates;
  std::vector<uint64_t> release_ns;  // from the scheduler
  std::vector<uint64_t> done_ns;     // at the end of the bus; without a bus, the same
  // Per round in which anything was done.
  std::vector<uint32_t> round_pkts;  // taken and released
  std::vector<uint64_t> round_took_ns;
};

// `arrivals` are ordered by time. Ends when all packets have left. Throws ConfigError for an
// unknown discipline, refused parameters, or arrivals out of order.
VirtualResult run_virtual(const VirtualSpec& spec, const std::vector<Arrival>& arrivals);

}  // namespace batchplane::egress
