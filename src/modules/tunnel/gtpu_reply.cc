// SPDX-License-Identifier: BSD-3-Clause
// gtpu_reply.cc - writes path management messages of TS 29.281, 7.2 and 7.3, over IPv4 and IPv6.
#include "modules/gtpu_reply.h"

#include "base/net6.h"

namespace batchplane::gtpu {
namespace {

constexpr uint8_t kTtl = 64;
// Information elements.
constexpr uint8_t kRecovery = 14;
constexpr uint8_t kTeidData = 16;
constexpr uint8_t kPeerAddress = 133;
constexpr uint8_t kExtensionList = 141;
constexpr uint32_t kMostMessageBytes = 64;

// Everything a reply needs of the asker, copied: the reply may be written over it.
struct Ends {
  bool is_v6 = false;
  uint8_t src[16] = {};  // of the asker
  uint8_t dst[16] = {};
  uint16_t src_port = 0;
  uint16_t dst_port = 0;

  explicit Ends(const Asker& asker) : is_v6(asker.place.is_v6) {
    const uint8_t* const udp = asker.ip + asker.place.offset_bytes;
    std::memcpy(src, asker.ip + (is_v6 ? 8 : net::kIpSrc), address_bytes());
    std::memcpy(dst, asker.ip + (is_v6 ? 24 : net::kIpDst), address_bytes());
    src_port = net::load16(udp);
    dst_port = net::load16(udp + 2);
  }
  [[nodiscard]] uint32_t address_bytes() const { return is_v6 ? 16 : 4; }
  [[nodiscard]] uint32_t ip_bytes() const { return is_v6 ? net::kIpv6Bytes : net::kIpv4Bytes; }
};

struct Payload {
  uint8_t bytes[kMostMessageBytes] = {};
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
  // Messages about a path have the tunnel 0 and a sequence number.
  void begin(uint8_t type, uint8_t flags, uint16_t sequence, uint8_t extension) {
    put8(kVersion1 | flags);
    put8(type);
    put16(0);  // length, see end()
    put32(0);
    put16(sequence);
    put8(0);
    put8(extension);
  }
  void end() { net::store16(bytes + 2, static_cast<uint16_t>(n_bytes - kHeaderBytes)); }
};

void write_ip(uint8_t* ip, const Ends& ends, uint32_t udp_bytes) {
  const uint32_t n = ends.address_bytes();
  std::memset(ip, 0, ends.ip_bytes());
  if (ends.is_v6) {
    ip[0] = 0x60;
    net::store16(ip + net::kIp6PayloadLength, static_cast<uint16_t>(udp_bytes));
    ip[6] = net::kProtoUdp;
    ip[7] = kTtl;
  } else {
    ip[0] = 0x45;
    net::store16(ip + net::kIpTotalLength, static_cast<uint16_t>(net::kIpv4Bytes + udp_bytes));
    net::store16(ip + net::kIpFragment, 0x4000);
    ip[net::kIpTtl] = kTtl;
    ip[net::kIpProto] = net::kProtoUdp;
  }
  std::memcpy(ip + (ends.is_v6 ? 8 : net::kIpSrc), ends.dst, n);
  std::memcpy(ip + (ends.is_v6 ? 24 : net::kIpDst), ends.src, n);
  if (ends.is_v6) return;
  net::store16(ip + net::kIpChecksum, net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)));
}

// `frame` holds the l3_bytes before the IP header, turned round already.
void write(uint8_t* ip, const Ends& ends, const Payload& payload, uint16_t to_port) {
  const uint32_t udp_bytes = kUdpBytes + payload.n_bytes;
  write_ip(ip, ends, udp_bytes);
  uint8_t* const udp = ip + ends.ip_bytes();
  net::store16(udp, kPort);
  net::store16(udp + 2, to_port);
  net::store16(udp + 4, static_cast<uint16_t>(udp_bytes));
  net::store16(udp + 6, 0);
  std::memcpy(udp + kUdpBytes, payload.bytes, payload.n_bytes);
  const uint32_t n = ends.address_bytes();
  const uint32_t addresses =
      net::checksum_add(ip + (ends.is_v6 ? 8 : net::kIpSrc), 2 * n, net::kProtoUdp + udp_bytes);
  const uint16_t sum = net::checksum_finish(net::checksum_add(udp, udp_bytes, addresses));
  net::store16(udp + 6, sum == 0 ? 0xffff : sum);
}

void turn_round(uint8_t* frame) {
  uint8_t mac[6];
  std::memcpy(mac, frame, 6);
  std::memcpy(frame, frame + 6, 6);
  std::memcpy(frame + 6, mac, 6);
}

Packet* make(Context& ctx, Packet& pkt, const Asker& asker, const Payload& payload) {
  const Ends ends(asker);
  Packet* const reply =
      ctx.originate(asker.l3_bytes + ends.ip_bytes() + kUdpBytes + payload.n_bytes);
  if (reply == nullptr) return nullptr;
  std::memcpy(reply->data(), pkt.data(), asker.l3_bytes);
  turn_round(reply->data());
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
    const uint8_t* const src = asker.ip + 8;
    uint32_t any = 0;
    for (uint32_t i = 0; i < 15; ++i) any |= src[i];
    return any != 0 && src[0] != 0xff && asker.ip[24] != 0xff;
  }
  const uint8_t top = asker.ip[net::kIpSrc];
  return top != 0 && top != 127 && top < 224 && asker.ip[net::kIpDst] < 224;
}

bool turn_into_echo_response(Packet& pkt, const Asker& asker, const Message& message) noexcept {
  const Ends ends(asker);
  Payload payload;
  payload.begin(kEchoResponse, kHasSequence, message.sequence, 0);
  payload.put8(kRecovery);
  payload.put8(0);
  payload.end();
  const uint32_t len_bytes = asker.l3_bytes + ends.ip_bytes() + kUdpBytes + payload.n_bytes;
  if (len_bytes > pkt.len_bytes() && len_bytes - pkt.len_bytes() > pkt.tailroom_bytes())
    return false;
  pkt.set_len_bytes(len_bytes);
  turn_round(pkt.data());
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
