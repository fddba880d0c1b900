// SPDX-License-Identifier: BSD-3-Clause
// gtpu_reply.cc - writes GTP-U messages of TS 29.281, 7.2 and 7.3, over IPv4 and IPv6.
#include "modules/tunnel/gtpu_reply.h"

#include <utility>

namespace batchplane::gtpu {
namespace {

constexpr uint8_t kTtl = 64;
// Information elements.
constexpr uint8_t kRecovery = 14;
constexpr uint8_t kTeidData = 16;
constexpr uint8_t kPeerAddress = 133;
constexpr uint8_t kExtensionList = 141;
constexpr uint32_t kMaxMessageBytes = 64;

// Points to the source address; the destination address follows it.
template <typename Byte>
Byte* addresses_of(Byte* ip, bool is_v6) {
  return is_v6 ? bytes_of(header_at<net::Ipv6>(ip).src) : bytes_of(header_at<net::Ipv4>(ip).src);
}

// Addresses and ports of the request, copied because the reply may overwrite it.
struct Ends {
  bool is_v6 = false;
  uint8_t src[16] = {};  // of the sender of the request
  uint8_t dst[16] = {};
  uint16_t src_port = 0;
  uint16_t dst_port = 0;

  explicit Ends(const Asker& asker) : is_v6(asker.place.is_v6) {
    const auto& udp = header_at<net::Udp>(asker.ip + asker.place.offset_bytes);
    const uint8_t* const addresses = addresses_of(asker.ip, is_v6);
    std::memcpy(src, addresses, address_bytes());
    std::memcpy(dst, addresses + address_bytes(), address_bytes());
    src_port = udp.src_port;
    dst_port = udp.dst_port;
  }
  [[nodiscard]] uint32_t address_bytes() const {
    return is_v6 ? sizeof(net::Be128) : sizeof(net::Be32);
  }
  [[nodiscard]] uint32_t ip_bytes() const { return is_v6 ? net::kIpv6Bytes : net::kIpv4Bytes; }
};

struct Payload {
  uint8_t bytes[kMaxMessageBytes] = {};
  uint32_t n_bytes = 0;

  void put8(uint8_t x) { bytes[n_bytes++] = x; }
  void put16(uint16_t x) {
    net::store16(bytes + n_bytes, x);
    n_bytes += 2;
  }
  void put32(uint32_t x) {
    net::store32(bytes + n_bytes, x);
    n_bytes += 4;
  }
  // Starts a message with TEID 0 and a sequence number.
  void begin(uint8_t type, uint8_t flags, uint16_t sequence, uint8_t extension) {
    auto& gtp = header_at<net::Gtpu>(bytes);
    gtp = {.flags = static_cast<uint8_t>(kVersion1 | flags), .type = type};
    behind<net::GtpuOptions>(gtp) = {.sequence = sequence, .next_extension = extension};
    n_bytes = kHeaderBytes + kOptionBytes;
  }
  void end() { header_at<net::Gtpu>(bytes).length = static_cast<uint16_t>(n_bytes - kHeaderBytes); }
};

void write_ip(uint8_t* ip, const Ends& ends, uint32_t udp_bytes) {
  if (ends.is_v6) {
    header_at<net::Ipv6>(ip) = {.version_class_flow = net::Ipv6::kPlain,
                                .payload_length = static_cast<uint16_t>(udp_bytes),
                                .next_header = net::kProtoUdp,
                                .hop_limit = kTtl,
                                .src = header_at<net::Be128>(ends.dst),
                                .dst = header_at<net::Be128>(ends.src)};
    return;
  }
  auto& ip4 = header_at<net::Ipv4>(ip);
  ip4 = {.version_ihl = net::Ipv4::kPlain,
         .total_length = static_cast<uint16_t>(net::kIpv4Bytes + udp_bytes),
         .fragment = net::Ipv4::kDontFragment,
         .ttl = kTtl,
         .protocol = net::kProtoUdp,
         .src = header_at<net::Be32>(ends.dst),
         .dst = header_at<net::Be32>(ends.src)};
  write_checksum(ip4);
}

// Writes IP, UDP and GTP-U at `ip`, back to the sender of the request. The caller swaps the MACs.
void write(uint8_t* ip, const Ends& ends, const Payload& payload, uint16_t to_port) {
  const uint32_t udp_bytes = net::kUdpBytes + payload.n_bytes;
  write_ip(ip, ends, udp_bytes);
  auto& udp = header_at<net::Udp>(ip + ends.ip_bytes());
  udp = {.src_port = kPort,
         .dst_port = to_port,
         .length = static_cast<uint16_t>(udp_bytes),
         .checksum = 0};
  std::memcpy(bytes_of(behind<net::Gtpu>(udp)), payload.bytes, payload.n_bytes);
  const uint32_t addresses = net::checksum_add(
      addresses_of(ip, ends.is_v6), 2 * ends.address_bytes(), net::kProtoUdp + udp_bytes);
  const uint16_t sum = net::checksum_finish(net::checksum_add(bytes_of(udp), udp_bytes, addresses));
  udp.checksum = sum == 0 ? 0xffff : sum;
}

void turn_round(Packet& pkt) {
  auto& eth = header_in<net::Ethernet>(pkt, 0);
  std::swap(eth.dst, eth.src);
}

Packet* make(Context& ctx, Packet& pkt, const Asker& asker, const Payload& payload) {
  const Ends ends(asker);
  Packet* const reply =
      ctx.originate(asker.l3_bytes + ends.ip_bytes() + net::kUdpBytes + payload.n_bytes);
  if (reply == nullptr) return nullptr;
  std::memcpy(reply->data(), pkt.data(), asker.l3_bytes);
  turn_round(*reply);
  write(reply->data() + asker.l3_bytes, ends, payload, kPort);
  PacketMeta& meta = reply->meta();
  meta.l3_offset_bytes = static_cast<uint8_t>(asker.l3_bytes);
  meta.in_interface = pkt.meta().in_interface;
  meta.vrf = pkt.meta().vrf;
  return reply;
}

}  // namespace

bool may_answer(const Asker& asker) noexcept {
  if (asker.l3_bytes < net::kEthBytes) return false;
  if (asker.place.is_v6) {
    const auto& ip = header_at<net::Ipv6>(asker.ip);
    const net::Address6 src = ip.src;
    const bool is_host = (src.high | src.low >> 8) != 0;
    return is_host && !src.is_multicast() && !net::Address6(ip.dst).is_multicast();
  }
  const auto& ip = header_at<net::Ipv4>(asker.ip);
  const uint32_t top = ip.src >> 24;
  return top != 0 && top != 127 && top < 224 && ip.dst >> 24 < 224;
}

bool turn_into_echo_response(Packet& pkt, const Asker& asker, const Message& message) noexcept {
  const Ends ends(asker);
  Payload payload;
  payload.begin(kEchoResponse, kHasSequence, message.sequence, 0);
  payload.put8(kRecovery);
  payload.put8(0);
  payload.end();
  const uint32_t len_bytes = asker.l3_bytes + ends.ip_bytes() + net::kUdpBytes + payload.n_bytes;
  if (len_bytes > pkt.len_bytes() && len_bytes - pkt.len_bytes() > pkt.tailroom_bytes())
    return false;
  pkt.set_len_bytes(len_bytes);
  turn_round(pkt);
  write(pkt.data() + asker.l3_bytes, ends, payload, ends.src_port);
  pkt.meta().l4_offset_bytes = 0;
  return true;
}

Packet* make_error_indication(Context& ctx, Packet& pkt, const Asker& asker,
                              uint32_t teid) noexcept {
  const Ends ends(asker);
  Payload payload;
  payload.begin(kErrorIndication, kHasSequence | kHasExtension, 0, kUdpPortExtension);
  payload.put8(1);
  payload.put16(ends.src_port);
  payload.put8(0);
  payload.put8(kTeidData);
  payload.put32(teid);
  payload.put8(kPeerAddress);
  payload.put16(static_cast<uint16_t>(ends.address_bytes()));
  std::memcpy(payload.bytes + payload.n_bytes, ends.dst, ends.address_bytes());
  payload.n_bytes += ends.address_bytes();
  payload.end();
  return make(ctx, pkt, asker, payload);
}

Packet* make_supported_extensions(Context& ctx, Packet& pkt, const Asker& asker) noexcept {
  Payload payload;
  payload.begin(kSupportedExtensions, kHasSequence, 0, 0);
  payload.put8(kExtensionList);
  payload.put8(1);
  payload.put8(kPduSessionContainer);
  payload.end();
  return make(ctx, pkt, asker, payload);
}

}  // namespace batchplane::gtpu
