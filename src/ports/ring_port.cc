// SPDX-License-Identifier: BSD-3-Clause
// ring_port.cc - receives from memory and sends into it.
#include "ports/ring_port.h"

#include <cstring>

#include "core/packet/packet_pool.h"
#include "exec/ring_size.h"
#include "ports/port_kinds.h"

namespace batchplane {
namespace {

// The consumer treats packets as fresh ones, whose data follows the standard headroom. False without room to
// move the data there.
bool move_to_standard_place(Packet& pkt) {
  const uint32_t len = pkt.len_bytes();
  const uint32_t at = pkt.headroom_bytes();
  if (at > kHeadroomBytes) {
    const uint32_t shift = at - kHeadroomBytes;
    pkt.push_front(shift);
    std::memmove(pkt.data(), pkt.data() + shift, len);
    pkt.set_len_bytes(len);
  } else if (at < kHeadroomBytes) {
    const uint32_t shift = kHeadroomBytes - at;
    if (pkt.tailroom_bytes() < shift) return false;
    pkt.set_len_bytes(len + shift);
    std::memmove(pkt.data() + shift, pkt.data(), len);
    pkt.pull_front(shift);
  }
  return true;
}

}  // namespace

RingPort::RingPort(uint32_t size_pkts, bool is_looped, const std::string& name)
    : ring_(size_pkts), is_looped_(is_looped), mac_(ports::local_mac(name)) {}

RingPort::~RingPort() {
  ring_.consume(ring_.capacity(), [](uint32_t, const BurstSlot& slot) {
    Packet* pkt = slot.packet<Packet>();
    PacketPool::free_bulk(&pkt, 1);
  });
}

uint32_t RingPort::rx_burst(Packet** pkts, uint32_t max, uint64_t /*now_ns*/) noexcept {
  const uint32_t n = ports::take_fresh(ring_, pkts, max);
  if (n != 0) {
    counters_.rx_pkts.add(n);
    counters_.rx_bytes.add(ports::sum_len_bytes(pkts, n));
  }
  return n;
}

uint32_t RingPort::tx_burst(Packet** pkts, uint32_t n) noexcept {
  uint64_t bytes = 0;
  uint32_t taken = n;
  if (is_looped_) {
    uint32_t n_fit = 0;
    while (n_fit < n && move_to_standard_place(*pkts[n_fit])) ++n_fit;
    taken = ring_.produce(n_fit, [&](uint32_t i, BurstSlot& slot) {
      bytes += pkts[i]->len_bytes();
      slot = BurstSlot::make(pkts[i], pkts[i]->len_bytes(), pkts[i]->meta().entry_ns);
    });
  } else if (n != 0) {
    bytes = ports::sum_len_bytes(pkts, n);
    PacketPool::free_bulk(pkts, n);
  }
  counters_.tx_pkts.add(taken);
  counters_.tx_bytes.add(bytes);
  counters_.tx_refused_pkts.add(n - taken);
  return taken;
}

Value RingPort::show() const {
  return Dict{{"size_pkts", ring_.capacity()},
              {"held_pkts", ring_.size()},
              {"sends_to", is_looped_ ? "itself" : "nowhere"},
              {"fed_by", is_looped_ ? "itself" : producer_}};
}

PortStats RingPort::stats() const {
  PortStats stats = counters_.stats();
  stats.rx_missed_pkts = producer_counts_.lost_pkts.load(std::memory_order_relaxed);
  return stats;
}

uint64_t RingPort::backlog_pkts() const {
  return producer_counts_.backlog_pkts.load(std::memory_order_relaxed);
}

void RingPort::release() {
  producer_counts_.backlog_pkts.store(0, std::memory_order_relaxed);
  producer_.clear();
}

void RingPort::claim(const std::string& producer) {
  if (is_looped_ || !producer_.empty()) {
    throw ConfigError(
        "the port is fed by " + (is_looped_ ? std::string("itself") : producer_) + " already", "",
        "give each generator a ring port of its own");
  }
  producer_ = producer;
}

namespace ports {

PortKindInfo ring_port_kind() {
  return {
      .kind = "ring",
      .help = "A port in memory: a generator fills it, what is sent into it is freed.",
      .params = {{.name = "size_pkts",
                  .unit = "pkts",
                  .default_value = exec::kDefaultRingPkts,
                  .help = "packets that it holds at most; small rings keep delays short",
                  .min = 1,
                  .max = 65536},
                 {.name = "sends_to",
                  .type = ParamType::kString,
                  .default_value = "nowhere",
                  .help = "nowhere: packets sent are counted and freed; itself: they come in again",
                  .choices = {"nowhere", "itself"}}},
      .notes = "A packet that comes in again keeps the time at which it first entered.",
      .is_memory = true,
      .takes_generators = true,
      .make = [](const Args& args) -> std::shared_ptr<Port> {
        return std::make_shared<RingPort>(args.u32("size_pkts"),
                                          args.string("sends_to") == "itself", args.name());
      },
  };
}

}  // namespace ports
}  // namespace batchplane
