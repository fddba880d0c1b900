// SPDX-License-Identifier: BSD-3-Clause
#include "ports/af_packet_port.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/packet/packet_pool.h"
#include "exec/batch.h"
#include "ports/kernel_interface.h"
#include "ports/kernel_stamp.h"
#include "ports/port_kinds.h"
#include "ports/ring_take.h"

namespace batchplane::ports {
namespace {

constexpr uint32_t kTaggedHeaderBytes = 14 + 2 * 4;  // Ethernet and two tags
// Offset of the data in a transmit frame.
constexpr uint32_t kTxDataAt = TPACKET2_HDRLEN - sizeof(sockaddr_ll);
// Offset of received data: the kernel's headers, and room to restore a VLAN tag.
constexpr uint32_t kRxDataAt = TPACKET_ALIGN(TPACKET2_HDRLEN) + 32;

uint32_t status_of(const tpacket2_hdr* frame) {
  return std::atomic_ref(const_cast<__u32&>(frame->tp_status)).load(std::memory_order_acquire);
}
void set_status(tpacket2_hdr* frame, uint32_t status) {
  std::atomic_ref(frame->tp_status).store(status, std::memory_order_release);
}

uint64_t stamp_ns_of(const tpacket2_hdr* frame) {
  return uint64_t{frame->tp_sec} * 1'000'000'000 + frame->tp_nsec;
}

uint32_t frame_bytes_for(uint32_t mtu_bytes) {
  uint32_t bytes = 2048;
  while (bytes < mtu_bytes + kTaggedHeaderBytes + kRxDataAt) bytes *= 2;
  return bytes;
}

}  // namespace

AfPacketPort::AfPacketPort(const Args& args)
    : interface_(args.string("interface")),
      where_(args.where()),
      is_promiscuous_(args.flag("promiscuous")) {
  // No protocol yet: nothing must arrive before start().
  fd_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) {
    fail("raw sockets cannot be opened",
         "run as root, or: setcap cap_net_raw+ep $(command -v batchplaned)");
  }
  try {
    require_interface(interface_, where_);
    index_ = interface_index(interface_);
    mac_ = interface_mac(interface_);
    const uint32_t kernel_mtu_bytes = interface_mtu_bytes(interface_);
    const uint32_t wanted = args.u32("mtu_bytes");
    mtu_bytes_ = wanted != 0 ? wanted : kernel_mtu_bytes;
    mtu_bytes_ = std::min(mtu_bytes_, kMaxFrameBytes - kTaggedHeaderBytes);
    open_rings(args.u32("rx_slots"), args.u32("tx_slots"));
    look_at_mtu();
  } catch (...) {
    close(fd_);
    throw;
  }
}

AfPacketPort::~AfPacketPort() {
  if (watch_ != nullptr) watch_->remove(this);
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  close(fd_);
}

void AfPacketPort::fail(const std::string& what, const std::string& fix) const {
  throw ConfigError(what + ": " + std::strerror(errno), where_, fix);
}

void AfPacketPort::set_option(int option, const void* value, uint32_t value_bytes,
                              const std::string& what) {
  if (setsockopt(fd_, SOL_PACKET, option, value, value_bytes) != 0) {
    fail("'" + interface_ + "': " + what, "lower rx_slots or tx_slots, or free memory");
  }
}

void AfPacketPort::open_rings(uint32_t rx_slots, uint32_t tx_slots) {
  const int version = TPACKET_V2;
  set_option(PACKET_VERSION, &version, sizeof version, "the kernel has no packet rings");
  const uint32_t frame_bytes = frame_bytes_for(mtu_bytes_);
  const uint32_t block_bytes = std::max(frame_bytes, 4096U);
  const uint32_t per_block = block_bytes / frame_bytes;
  for (const auto& [ring, slots, option] :
       {std::tuple{&rx_, rx_slots, PACKET_RX_RING}, std::tuple{&tx_, tx_slots, PACKET_TX_RING}}) {
    tpacket_req request{};
    request.tp_block_size = block_bytes;
    request.tp_block_nr = (slots + per_block - 1) / per_block;
    request.tp_frame_size = frame_bytes;
    request.tp_frame_nr = request.tp_block_nr * per_block;
    set_option(option, &request, sizeof request, "a ring cannot be had");
    ring->frame_bytes = frame_bytes;
    ring->n_frames = request.tp_frame_nr;
    mapped_bytes_ += static_cast<size_t>(request.tp_block_nr) * block_bytes;
  }
  mapped_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (mapped_ == MAP_FAILED) {
    mapped_ = nullptr;
    fail("'" + interface_ + "': its rings cannot be mapped", "lower rx_slots or tx_slots");
  }
  rx_.base = static_cast<uint8_t*>(mapped_);
  tx_.base = rx_.base + static_cast<size_t>(rx_.n_frames) * frame_bytes;
}

void AfPacketPort::start(PacketPool& pool) {
  if (pool.data_bytes() < max_frame_bytes()) {
    throw ConfigError("packets of " + std::to_string(pool.data_bytes()) +
                          " bytes are too small for an MTU of " + std::to_string(mtu_bytes_),
                      where_, "make the packets of the pool larger, or mtu_bytes smaller");
  }
  pool_ = &pool;
  // Not supported by every kernel; without it, frames sent by others on the interface arrive too.
  const int yes = 1;
  (void)setsockopt(fd_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes);
  // Room for everything in the ring; without the privilege, as much as any user may have.
  const auto buffer_bytes =
      static_cast<int>(std::min<uint64_t>(uint64_t{tx_.n_frames} * tx_.frame_bytes * 2, 64 << 20));
  if (setsockopt(fd_, SOL_SOCKET, SO_SNDBUFFORCE, &buffer_bytes, sizeof buffer_bytes) != 0) {
    (void)setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes);
  }
  bind_to(index_.load());
  watch_ = LinkWatch::instance();
  watch_->add(this, [this] { follow(); });
}

void AfPacketPort::bind_to(uint32_t index) const {
  if (is_promiscuous_) {
    packet_mreq membership{};
    membership.mr_ifindex = static_cast<int>(index);
    membership.mr_type = PACKET_MR_PROMISC;
    (void)setsockopt(fd_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof membership);
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(index);
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail("interface '" + interface_ + "' cannot be used", "look whether it is still there");
  }
}

uint32_t AfPacketPort::ready_frames(uint32_t max) const noexcept {
  // At most one round: a ring may be shorter than a batch.
  max = std::min(max, rx_.n_frames);
  uint32_t n = 0;
  uint32_t at = rx_.at;
  while (n < max && (status_of(rx_.frame(at)) & TP_STATUS_USER) != 0) {
    at = at + 1 == rx_.n_frames ? 0 : at + 1;
    ++n;
  }
  return n;
}

// Copies a frame and restores the VLAN tag that the kernel stripped. False when it is incomplete.
bool AfPacketPort::receive(const tpacket2_hdr* frame, Packet& pkt) const noexcept {
  const uint32_t len_bytes = frame->tp_snaplen;
  const bool is_tagged = (frame->tp_status & TP_STATUS_VLAN_VALID) != 0;
  const uint32_t whole_bytes = len_bytes + (is_tagged ? net::kVlanTagBytes : 0);
  if (len_bytes != frame->tp_len || len_bytes < net::kEthBytes || whole_bytes > pool_->data_bytes())
      [[unlikely]] {
    return false;
  }
  const uint8_t* from = reinterpret_cast<const uint8_t*>(frame) + frame->tp_mac;
  pkt.reset(whole_bytes);
  uint8_t* to = pkt.data();
  if (!is_tagged) [[likely]] {
    std::memcpy(to, from, len_bytes);
    return true;
  }
  const bool has_type = (frame->tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
  std::memcpy(to, from, net::kMacPairBytes);
  header_in<net::VlanTag>(pkt, net::kMacPairBytes) = {
      .type = has_type ? frame->tp_vlan_tpid : net::kTypeVlan, .control = frame->tp_vlan_tci};
  std::memcpy(to + net::kMacPairBytes + net::kVlanTagBytes, from + net::kMacPairBytes,
              len_bytes - net::kMacPairBytes);
  return true;
}

// The kernel fills the ring in order, so the ready frames end at one position (binary search).
uint32_t AfPacketPort::waiting_frames() const noexcept {
  uint32_t ready = 0;
  uint32_t end = rx_.n_frames;
  while (ready < end) {
    const uint32_t middle = (ready + end) / 2;
    const uint32_t at = (rx_.at + middle) % rx_.n_frames;
    if ((status_of(rx_.frame(at)) & TP_STATUS_USER) != 0) {
      ready = middle + 1;
    } else {
      end = middle;
    }
  }
  return ready;
}

exec::RingCounts AfPacketPort::ring_counts() const noexcept {
  return {waiting_frames(), rx_.n_frames, fill_};
}

uint32_t AfPacketPort::rx_burst(Packet** pkts, uint32_t max, uint64_t now_ns) noexcept {
  const uint32_t n = ready_frames(max);
  // Fewer than asked for means that the ring is empty; otherwise counts the rest.
  fill_.look(n < max ? n : waiting_frames());
  if (n == 0) return 0;
  // Frames stay in the ring while the pool is empty; the kernel counts those that no longer fit.
  if (!pool_->alloc_bulk(pkts, n)) [[unlikely]] {
    rx_starved_polls_.add(1);
    return 0;
  }
  PacketMeta meta = fresh_meta(now_ns);
  const uint64_t real_ns = real_time_ns();
  uint32_t kept = 0;
  Packet* refused[exec::kMaxBatchPkts];
  uint32_t n_refused = 0;
  for (uint32_t i = 0; i < n; ++i) {
    tpacket2_hdr* frame = rx_.current();
    Packet* pkt = pkts[i];
    if (receive(frame, *pkt)) [[likely]] {
      meta.entry_ns = arrival_ns(now_ns, real_ns, stamp_ns_of(frame));
      pkt->meta() = meta;
      pkts[kept++] = pkt;
    } else {
      refused[n_refused++] = pkt;
    }
    set_status(frame, TP_STATUS_KERNEL);
    rx_.advance();
  }
  if (n_refused != 0) [[unlikely]] {
    counters_.rx_refused_pkts.add(n_refused);
    PacketPool::free_bulk(refused, n_refused);
  }
  counters_.rx_pkts.add(kept);
  counters_.rx_bytes.add(sum_len_bytes(pkts, kept));
  return kept;
}

// Copies packets into free slots and returns how many. Stops early at a full ring, or at a packet longer than
// a slot.
uint32_t AfPacketPort::fill_slots(Packet** pkts, uint32_t n) noexcept {
  uint32_t filled = 0;
  for (; filled < n; ++filled) {
    tpacket2_hdr* frame = tx_.current();
    if ((status_of(frame) & (TP_STATUS_SEND_REQUEST | TP_STATUS_SENDING)) != 0) break;
    const uint32_t len_bytes = pkts[filled]->len_bytes();
    if (len_bytes > tx_.frame_bytes - kTxDataAt) [[unlikely]]
      break;
    std::memcpy(reinterpret_cast<uint8_t*>(frame) + kTxDataAt, pkts[filled]->data(), len_bytes);
    frame->tp_len = len_bytes;
    set_status(frame, TP_STATUS_SEND_REQUEST);
    tx_.advance();
  }
  return filled;
}

// The kernel sends within this call and stops at the first frame that it refuses: the link is down, memory is
// short, or the frame is too long. That frame and all behind it are taken back, so that none goes out later
// or blocks the ring. Returns how many were sent.
uint32_t AfPacketPort::let_kernel_send(uint32_t first, uint32_t n) noexcept {
  const bool is_done = send(fd_, nullptr, 0, MSG_DONTWAIT) >= 0;
  if (!is_done) tx_busy_.add(1);
  if (!is_done && errno == EMSGSIZE) look_at_mtu();
  constexpr uint32_t kNotTaken = TP_STATUS_SEND_REQUEST | TP_STATUS_WRONG_FORMAT;
  uint32_t sent = 0;
  uint32_t at = first;
  for (; sent < n && (status_of(tx_.frame(at)) & kNotTaken) == 0; ++sent) {
    at = at + 1 == tx_.n_frames ? 0 : at + 1;
  }
  for (uint32_t k = sent, back = at; k < n; ++k) {
    set_status(tx_.frame(back), TP_STATUS_AVAILABLE);
    back = back + 1 == tx_.n_frames ? 0 : back + 1;
  }
  tx_.at = at;
  return sent;
}

uint32_t AfPacketPort::tx_burst(Packet** pkts, uint32_t n) noexcept {
  if (n == 0) return 0;
  const uint32_t first = tx_.at;
  const uint32_t filled = fill_slots(pkts, n);
  const uint32_t sent = filled == 0 ? 0 : let_kernel_send(first, filled);
  counters_.tx_refused_pkts.add(n - sent);
  if (sent == 0) return 0;
  counters_.tx_pkts.add(sent);
  counters_.tx_bytes.add(sum_len_bytes(pkts, sent));
  PacketPool::free_bulk(pkts, sent);
  return sent;
}

// The interface's MTU, limited by the size of a ring slot.
void AfPacketPort::look_at_mtu() noexcept {
  const uint32_t room_bytes = tx_.frame_bytes - kTxDataAt - net::kEthBytes - net::kVlanTagBytes;
  set_tx_mtu_bytes(std::min(interface_mtu_bytes(interface_), room_bytes));
}

void AfPacketPort::follow() {
  const uint32_t index = interface_index(interface_);
  if (index == 0) {
    note_state("removed");
    return;
  }
  look_at_mtu();
  if (index != index_.load()) {
    try {
      bind_to(index);
    } catch (const ConfigError&) {
      return;  // gone again; the next change is reported too
    }
    index_.store(index);
    rebinds_.add(1);
    note_state("made again");
  }
  note_state(is_interface_running(interface_) ? "up" : "down");
}

void AfPacketPort::note_state(const char* state) {
  if (std::string_view(state_) == state) return;
  const bool was_never_down = *state_ == 0 && std::string_view(state) == "up";
  state_ = state;
  if (!was_never_down) events_.note(interface_ + " is " + state);
}

PortStats AfPacketPort::stats() const {
  tpacket_stats kernel{};
  socklen_t kernel_bytes = sizeof kernel;
  if (getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &kernel, &kernel_bytes) == 0) {
    rx_missed_pkts_.fetch_add(kernel.tp_drops, std::memory_order_relaxed);
  }
  PortStats stats = counters_.stats();
  stats.rx_missed_pkts = rx_missed_pkts_.load(std::memory_order_relaxed);
  return stats;
}

uint32_t AfPacketPort::max_frame_bytes() const {
  return std::max(2048U, mtu_bytes_ + kTaggedHeaderBytes);
}

bool AfPacketPort::is_there() const { return interface_index(interface_) == index_.load(); }

bool AfPacketPort::is_up() const { return is_there() && is_interface_running(interface_); }

Value AfPacketPort::show() const {
  return Dict{{"interface", interface_},        {"is_there", is_there()},
              {"promiscuous", is_promiscuous_}, {"rx_starved_polls", rx_starved_polls_.get()},
              {"tx_busy", tx_busy_.get()},      {"rebinds", rebinds_.get()},
              {"events", events_.list()},       {"offloads", offload_facts(interface_)}};
}

PortKindInfo af_packet_port_kind() {
  const auto slots = [](const char* name, const char* help) {
    return ParamSpec{
        .name = name, .unit = "pkts", .default_value = 512, .help = help, .min = 32, .max = 65536};
  };
  return {.kind = "af_packet",
          .help = "A network interface of the kernel, through a packet socket.",
          .params = {{.name = "interface",
                      .type = ParamType::kString,
                      .help = "name of the interface",
                      .min = 1},
                     {.name = "mtu_bytes",
                      .unit = "bytes",
                      .default_value = 0,
                      .help = "longest IP packet; 0 = as the interface has it",
                      .min = 0,
                      .max = 9600},
                     {.name = "promiscuous",
                      .type = ParamType::kBool,
                      .default_value = true,
                      .help = "also take frames for other MAC addresses"},
                     slots("rx_slots", "frames that the kernel may hold for us on the way in"),
                     slots("tx_slots", "frames that we may hold for the kernel on the way out")},
          .notes =
              "Packets enter at the time at which the kernel had them. Frames are copied out of "
              "and into the kernel's rings; VLAN tags that it took out are put back with their "
              "type, and fragments arrive as they were sent.",
          .make = [](const Args& args) -> std::shared_ptr<Port> {
            return std::make_shared<AfPacketPort>(args);
          }};
}

}  // namespace batchplane::ports
