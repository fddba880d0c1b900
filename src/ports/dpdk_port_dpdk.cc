// SPDX-License-Identifier: BSD-3-Clause
// dpdk_port_dpdk.cc - configures a device, and receives and sends its bursts.
#include <rte_ethdev.h>

#include <algorithm>
#include <cstring>

#include "core/packet/packet_pool.h"
#include "exec/batch.h"
#include "ports/dpdk_port.h"
#include "ports/kernel_interface.h"
#include "ports/ring_take.h"

namespace batchplane::ports {
namespace {

constexpr uint16_t kTypeQinq = 0x88a8;

// Reinserts a stripped VLAN tag behind the addresses. False without headroom.
bool insert_tag(Packet& pkt, uint16_t type, uint16_t tci) {
  if (pkt.headroom_bytes() < net::kVlanTagBytes) return false;
  pkt.push_front(net::kVlanTagBytes);
  uint8_t* data = pkt.data();
  std::memmove(data, data + net::kVlanTagBytes, net::kMacPairBytes);
  header_in<net::VlanTag>(pkt, net::kMacPairBytes) = {.type = type, .control = tci};
  return true;
}

// Makes the driver's mbuf a single segment with all its tags. False when impossible.
bool make_whole(rte_mbuf* mbuf) {
  if (mbuf->nb_segs > 1 && rte_pktmbuf_linearize(mbuf) != 0) return false;
  if (mbuf->data_len < net::kEthBytes || mbuf->data_len > kMaxFrameBytes) return false;
  Packet& pkt = *Packet::from(mbuf);
  const uint64_t flags = mbuf->ol_flags;
  const bool is_stripped = (flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0;
  if (is_stripped && !insert_tag(pkt, net::kTypeVlan, mbuf->vlan_tci)) return false;
  if ((flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0 &&
      !insert_tag(pkt, kTypeQinq, mbuf->vlan_tci_outer)) {
    return false;
  }
  mbuf->ol_flags = 0;
  return true;
}

}  // namespace

DpdkPort::DpdkPort(const DeviceArgs& device, const Args& args)
    : device_(device),
      where_(args.where()),
      is_promiscuous_(args.flag("promiscuous")),
      rx_slots_(static_cast<uint16_t>(args.u32("rx_slots"))),
      tx_slots_(static_cast<uint16_t>(args.u32("tx_slots"))),
      port_(attach_device(device, args.where())) {
  try {
    configure(args.u32("mtu_bytes"));
  } catch (...) {
    detach_device(port_);
    throw;
  }
  if (!device_.iface.empty()) iface_index_ = interface_index(device_.iface);
}

DpdkPort::~DpdkPort() { detach_device(port_); }

bool DpdkPort::is_there() const {
  return device_.iface.empty() || interface_index(device_.iface) == iface_index_;
}

void DpdkPort::fail(const std::string& what, int status, const std::string& fix) const {
  throw ConfigError(what + ": " + std::strerror(std::abs(status)), where_, fix);
}

void DpdkPort::configure(uint32_t wanted_mtu_bytes) {
  rte_eth_dev_info info{};
  if (const int status = rte_eth_dev_info_get(port_, &info); status != 0) {
    fail("'" + device_.device + "' does not say what it can do", status, "try another device");
  }
  driver_ = info.driver_name == nullptr ? "" : info.driver_name;
  rte_eth_conf conf{};
  if (wanted_mtu_bytes != 0) conf.rxmode.mtu = wanted_mtu_bytes;
  if (const int status = rte_eth_dev_configure(port_, 1, 1, &conf); status != 0) {
    fail("'" + device_.device + "' cannot be configured", status,
         "it must allow an MTU of " + std::to_string(wanted_mtu_bytes) + " and one queue each way");
  }
  if (wanted_mtu_bytes != 0) {
    const int status = rte_eth_dev_set_mtu(port_, static_cast<uint16_t>(wanted_mtu_bytes));
    // A driver without the call keeps the MTU with which it was configured.
    if (status != 0 && status != -ENOTSUP) {
      fail("'" + device_.device + "' refuses an MTU of " + std::to_string(wanted_mtu_bytes), status,
           "its largest is " + std::to_string(info.max_mtu));
    }
  }
  uint16_t mtu = 1500;
  rte_eth_dev_get_mtu(port_, &mtu);
  mtu_bytes_ = wanted_mtu_bytes != 0 ? wanted_mtu_bytes : mtu;
  if (wanted_mtu_bytes == 0 && !device_.iface.empty() && interface_mtu_bytes(device_.iface) != 0) {
    mtu_bytes_ = interface_mtu_bytes(device_.iface);
  }
  rte_eth_dev_adjust_nb_rx_tx_desc(port_, &rx_slots_, &tx_slots_);
  rte_ether_addr address{};
  if (rte_eth_macaddr_get(port_, &address) == 0) {
    std::copy(std::begin(address.addr_bytes), std::end(address.addr_bytes), mac_.begin());
  }
}

void DpdkPort::start(PacketPool& pool) {
  if (pool.data_bytes() < max_frame_bytes()) {
    throw ConfigError("packets of " + std::to_string(pool.data_bytes()) +
                          " bytes are too small for an MTU of " + std::to_string(mtu_bytes_),
                      where_, "make the packets of the pool larger, or mtu_bytes smaller");
  }
  const auto socket = static_cast<unsigned>(SOCKET_ID_ANY);
  int status = rte_eth_rx_queue_setup(port_, 0, rx_slots_, socket, nullptr, pool.mempool());
  if (status != 0) {
    fail("'" + device_.device + "' cannot receive into the pool", status,
         "its frames must fit packets of " + std::to_string(pool.data_bytes()) +
             " bytes (af_packet: lower framesz), and the pool must hold " +
             std::to_string(rx_slots_));
  }
  status = rte_eth_tx_queue_setup(port_, 0, tx_slots_, socket, nullptr);
  if (status != 0) fail("'" + device_.device + "' cannot send", status, "lower tx_slots");
  status = rte_eth_dev_start(port_);
  if (status != 0)
    fail("'" + device_.device + "' does not start", status, "see the log for the driver's words");
  // Not every driver supports the mode; those that do not receive everything anyway.
  if (is_promiscuous_) rte_eth_promiscuous_enable(port_);
}

// 0 when the driver cannot tell.
uint32_t DpdkPort::waiting_pkts() const noexcept {
  const int n = rte_eth_rx_queue_count(port_, 0);
  return n < 0 ? 0 : static_cast<uint32_t>(n);
}

exec::RingCounts DpdkPort::ring_counts() const noexcept {
  return {waiting_pkts(), rx_slots_, fill_};
}

uint32_t DpdkPort::rx_burst(Packet** pkts, uint32_t max, uint64_t now_ns) noexcept {
  auto** mbufs = reinterpret_cast<rte_mbuf**>(pkts);
  const uint32_t n = rte_eth_rx_burst(port_, 0, mbufs, static_cast<uint16_t>(max));
  const uint64_t gap_ns = now_ns - std::min(now_ns, last_poll_ns_);
  last_poll_ns_ = now_ns;
  // Fewer than asked for means that the queue was empty; otherwise counts the rest.
  fill_.look(n < max ? n : n + waiting_pkts());
  if (n == 0) return 0;
  rx_bursts_.add(1);
  rx_wait_ns_.add(gap_ns / 2);
  uint32_t kept = 0;
  uint64_t bytes = 0;
  const PacketMeta meta = fresh_meta(now_ns);
  for (uint32_t i = 0; i < n; ++i) {
    if (!make_whole(mbufs[i])) [[unlikely]] {
      rte_pktmbuf_free(mbufs[i]);
      counters_.rx_refused_pkts.add(1);
      continue;
    }
    pkts[kept] = Packet::from(mbufs[i]);
    pkts[kept]->meta() = meta;
    bytes += pkts[kept++]->len_bytes();
  }
  counters_.rx_pkts.add(kept);
  counters_.rx_bytes.add(bytes);
  return kept;
}

uint32_t DpdkPort::tx_burst(Packet** pkts, uint32_t n) noexcept {
  if (n == 0) return 0;
  uint32_t len_bytes[exec::kMaxBatchPkts];
  n = std::min(n, exec::kMaxBatchPkts);
  for (uint32_t i = 0; i < n; ++i) len_bytes[i] = pkts[i]->len_bytes();
  const uint32_t taken =
      rte_eth_tx_burst(port_, 0, reinterpret_cast<rte_mbuf**>(pkts), static_cast<uint16_t>(n));
  has_sent_ = true;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < taken; ++i) bytes += len_bytes[i];
  counters_.tx_pkts.add(taken);
  counters_.tx_bytes.add(bytes);
  counters_.tx_refused_pkts.add(n - taken);
  return taken;
}

// The driver notifies the kernel once per burst. When the kernel answers EAGAIN or ENOBUFS, the driver counts
// the frames as sent, and they stay in the ring until the next notification.
void DpdkPort::push() noexcept {
  if (!has_sent_) return;
  has_sent_ = false;
  rte_mbuf* none = nullptr;
  (void)rte_eth_tx_burst(port_, 0, &none, 0);
}

PortStats DpdkPort::stats() const {
  PortStats stats = counters_.stats();
  rte_eth_stats device{};
  if (rte_eth_stats_get(port_, &device) == 0) {
    stats.rx_missed_pkts = device.imissed;
    stats.rx_refused_pkts += device.ierrors + device.rx_nombuf;
  }
  return stats;
}

bool DpdkPort::is_up() const {
  if (!device_.iface.empty()) return is_there() && is_interface_running(device_.iface);
  rte_eth_link link{};
  return rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

Value DpdkPort::show() const {
  rte_eth_stats device{};
  rte_eth_stats_get(port_, &device);
  const uint64_t bursts = rx_bursts_.get();
  Dict facts = {{"device", device_.text},
                {"driver", driver_},
                {"promiscuous", is_promiscuous_},
                {"device_rx_missed_pkts", device.imissed},
                {"device_rx_errors", device.ierrors},
                {"device_rx_no_packet", device.rx_nombuf},
                {"device_tx_errors", device.oerrors},
                {"rx_wait_estimate_ns", bursts == 0 ? 0 : rx_wait_ns_.get() / bursts}};
  if (device_.iface.empty()) return facts;
  facts["interface"] = device_.iface;
  facts["is_there"] = is_there();
  facts["offloads"] = offload_facts(device_.iface);
  return facts;
}

}  // namespace batchplane::ports
