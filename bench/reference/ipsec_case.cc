// SPDX-License-Identifier: BSD-3-Clause
#include "reference/ipsec_case.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/net_headers.h"
#include "common/lone_module.h"

namespace bench {

using namespace batchplane;  // NOLINT: a benchmark over the whole engine

namespace {

constexpr uint32_t kBurstPkts = IpsecPeer::kMaxBurstPkts;
constexpr uint32_t kCheckedPkts = 2 * kBurstPkts;
constexpr uint32_t kId = 3;
constexpr uint32_t kSpi = 0x1003;
constexpr uint32_t kOuterBytes = net::kEthBytes + net::kIpv4Bytes;

Frame frame_in(Packet& pkt) { return {pkt.data(), pkt.data() + pkt.len_bytes()}; }
Frame tail_of(const Frame& frame, size_t n_bytes) {
  return {frame.end() - static_cast<std::ptrdiff_t>(std::min(n_bytes, frame.size())), frame.end()};
}

// What comes out of the first packets.
std::vector<Frame> ours_of(const IpsecCase& of, PacketPool& pool) {
  LoneModule module(of.kind(), of.params(), of.gates());
  PacketRing ring(pool, of);
  std::vector<Frame> frames;
  while (frames.size() < kCheckedPkts) {
    Packet** const pkts = ring.next(kBurstPkts);
    if (module.run(pkts, kBurstPkts) != kBurstPkts) {
      throw std::runtime_error(of.label() + ": our module drops packets");
    }
    for (uint32_t i = 0; i < kBurstPkts; ++i) frames.push_back(frame_in(*pkts[i]));
  }
  return frames;
}
std::vector<Frame> theirs_of(const IpsecCase& of, const std::string& driver, PeerWay way,
                             uint32_t n, PacketPool& pool) {
  IpsecPeer peer(of.peer(driver, way));
  PacketRing ring(pool, of);
  std::vector<Frame> frames;
  Packet* done[IpsecPeer::kMaxInsidePkts];
  const auto keep = [&](uint32_t n_done) {
    for (uint32_t i = 0; i < n_done; ++i) frames.push_back(frame_in(*done[i]));
  };
  for (uint32_t i = 0; i < kCheckedPkts; i += n) keep(peer.run(ring.next(n), n, done));
  keep(peer.drain(done));
  return frames;
}

// The packet inside, or nothing.
Frame opened(const IpsecCase& encrypt, const Frame& sealed, PacketPool& pool) {
  IpsecCase decrypt = encrypt;
  decrypt.is_out = false;
  decrypt.frame = sealed;
  decrypt.written_bytes = static_cast<uint32_t>(sealed.size());
  LoneModule module(decrypt.kind(), decrypt.params(), decrypt.gates());
  PacketRing ring(pool, decrypt);
  Packet** const pkts = ring.next(1);
  return module.run(pkts, 1) == 1 ? tail_of(frame_in(**pkts), encrypt.ip_bytes) : Frame();
}

}  // namespace

void write_packet(Packet& pkt, const Frame& frame, uint32_t written_bytes) noexcept {
  pkt.reset(static_cast<uint32_t>(frame.size()));
  std::memcpy(pkt.data(), frame.data(), written_bytes);
  pkt.meta() = {.in_interface = kNoInterface};
  pkt.meta().tunnel_id = kId;
}

std::string IpsecCase::label() const {
  return kind() + ", " + suite->name + ", " + std::to_string(ip_bytes) + " B";
}

Dict IpsecCase::params() const {
  Dict sa{{"id", kId}, {"spi", kSpi}, {"suite", suite->name}};
  if (is_out) sa["remote"] = "192.0.2.2", sa["local"] = "192.0.2.1";
  Dict params{{"sas", List{sa}}, {"test_keys", true}};
  if (!is_out) params["replay_window_pkts"] = 0;
  return params;
}

PeerShape IpsecCase::peer(const std::string& driver, PeerWay way) const {
  return {.driver = driver,
          .way = way,
          .suite = suite,
          .keys = esp::KeyRing::of_tests().keys_of(kId, *suite, "bench"),
          .spi = kSpi,
          .outer = is_out ? std::span<const uint8_t>(outer) : std::span<const uint8_t>()};
}

IpsecCase make_encrypt_case(const esp::Suite& suite, uint32_t ip_bytes, PacketPool& pool) {
  IpsecCase of{.suite = &suite, .ip_bytes = ip_bytes};
  of.frame.resize(net::kEthBytes + ip_bytes);
  uint8_t* const ip = &of.frame[net::kEthBytes];
  net::store16(&of.frame[12], net::kTypeIpv4);
  ip[0] = 0x45;
  net::store16(ip + net::kIpTotalLength, static_cast<uint16_t>(ip_bytes));
  ip[net::kIpProto] = net::kProtoUdp;
  for (uint32_t i = net::kIpv4Bytes; i < ip_bytes; ++i) ip[i] = static_cast<uint8_t>(7 * i);
  // Headers as our module writes them, less what it writes anew for each packet.
  of.written_bytes = static_cast<uint32_t>(of.frame.size());
  of.outer = ours_of(of, pool).front();
  of.outer.resize(kOuterBytes);
  of.written_bytes = kOuterBytes;
  return of;
}

IpsecCase make_decrypt_case(const IpsecCase& encrypt, PacketPool& pool) {
  IpsecCase whole = encrypt;
  whole.written_bytes = static_cast<uint32_t>(whole.frame.size());
  IpsecCase of = whole;
  of.is_out = false;
  of.frame = ours_of(whole, pool).front();
  of.written_bytes = static_cast<uint32_t>(of.frame.size());
  return of;
}

PacketRing::PacketRing(PacketPool& pool, const IpsecCase& of) : of_(of) {
  if (!pool.alloc_bulk(pkts_.data(), kPkts)) throw std::runtime_error("the pool is empty");
}
PacketRing::~PacketRing() { PacketPool::free_bulk(pkts_.data(), kPkts); }

Packet** PacketRing::next(uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    live_[i] = pkts_[at_++ % kPkts];
    write_packet(*live_[i], of_.frame, of_.written_bytes);
  }
  return live_.data();
}

void compare_with_peer(const IpsecCase& of, const std::string& driver, PeerWay way, uint32_t n,
                       PacketPool& pool) {
  IpsecCase whole = of;
  whole.written_bytes = static_cast<uint32_t>(of.frame.size());
  const std::vector<Frame> ours = ours_of(whole, pool);
  const std::vector<Frame> theirs = theirs_of(whole, driver, way, n, pool);
  const std::string what = of.label() + ": " + driver + ", " + name_of(way);
  if (theirs.size() != ours.size()) throw std::runtime_error(what + " loses packets");
  const bool has_other_iv =
      of.is_out && way == PeerWay::kCall && of.suite->cipher == esp::Cipher::kCbc;
  const Frame inner = tail_of(of.frame, of.ip_bytes);
  for (size_t i = 0; i < ours.size(); ++i) {
    const size_t n_bytes = of.is_out ? ours[i].size() - kOuterBytes : of.ip_bytes;
    const bool is_good = has_other_iv ? opened(whole, theirs[i], pool) == inner
                                      : tail_of(ours[i], n_bytes) == tail_of(theirs[i], n_bytes);
    if (!is_good || (of.is_out && ours[i].size() != theirs[i].size())) {
      throw std::runtime_error(what + " makes another packet, the " + std::to_string(i) + "th");
    }
  }
}

}  // namespace bench
