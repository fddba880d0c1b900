// SPDX-License-Identifier: BSD-3-Clause
// tunnel_frame.cc - outer headers of generated packets.
#include "traffic/tunnel_frame.h"

namespace batchplane::traffic {
namespace {

constexpr uint16_t kGtpuPort = 2152;
constexpr uint16_t kVxlanPort = 4789;
constexpr uint32_t kUdpBytes = 8;

void put16(std::vector<uint8_t>& out, uint32_t x) {
  out.push_back(static_cast<uint8_t>(x >> 8));
  out.push_back(static_cast<uint8_t>(x));
}
void put32(std::vector<uint8_t>& out, uint32_t x) {
  put16(out, x >> 16);
  put16(out, x & 0xffff);
}

std::vector<uint8_t> tunnel_header(const TunnelSpec& tunnel, uint32_t payload_bytes) {
  std::vector<uint8_t> out;
  if (tunnel.kind == TunnelSpec::Kind::kVxlan) {
    put32(out, 0x08000000);
    put32(out, tunnel.id << 8);
    return out;
  }
  const bool has_qfi = tunnel.qfi >= 0;
  put16(out, has_qfi ? 0x34ff : 0x30ff);
  put16(out, payload_bytes + (has_qfi ? 8 : 0));
  put32(out, tunnel.id);
  if (!has_qfi) return out;
  put32(out, 0x85);  // no numbers; next: PDU session container
  put32(out, 0x01100000 | static_cast<uint32_t>(tunnel.qfi) << 8);
  return out;
}

}  // namespace

std::vector<uint8_t> put_into_tunnel(const std::vector<uint8_t>& frame, uint32_t l3_bytes,
                                     const TunnelSpec& tunnel) {
  const bool is_gtpu = tunnel.kind == TunnelSpec::Kind::kGtpu;
  const uint32_t from = is_gtpu ? l3_bytes : 0;
  const std::vector<uint8_t> header =
      tunnel_header(tunnel, static_cast<uint32_t>(frame.size()) - from);
  const auto udp_bytes = static_cast<uint32_t>(kUdpBytes + header.size() + frame.size() - from);
  std::vector<uint8_t> out(frame.begin(), frame.begin() + l3_bytes);
  const size_t ip_at = out.size();
  put32(out, 0x45000000 | (net::kIpv4Bytes + udp_bytes));
  put32(out, 0x00004000);  // not to be fragmented
  put32(out, 64U << 24 | uint32_t{net::kProtoUdp} << 16);
  put32(out, tunnel.src_ip);
  put32(out, tunnel.dst_ip);
  uint8_t* const ip = &out[ip_at];
  net::store16(ip + net::kIpChecksum, net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)));
  const uint16_t port = is_gtpu ? kGtpuPort : kVxlanPort;
  put16(out, port);
  put16(out, port);
  put16(out, udp_bytes);
  put16(out, 0);
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), frame.begin() + from, frame.end());
  return out;
}

}  // namespace batchplane::traffic
