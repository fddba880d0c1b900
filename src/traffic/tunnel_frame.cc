// SPDX-License-Identifier: BSD-3-Clause
// tunnel_frame.cc - outer headers of generated packets.
#include "traffic/tunnel_frame.h"

#include "base/tunnel_headers.h"

namespace batchplane::traffic {
namespace {

template <HeaderView Header>
void append(std::vector<uint8_t>& out, const Header& header) {
  out.insert(out.end(), bytes_of(header), bytes_of(header) + sizeof header);
}

std::vector<uint8_t> tunnel_header(const TunnelSpec& tunnel, uint32_t payload_bytes) {
  std::vector<uint8_t> out;
  if (tunnel.kind == TunnelSpec::Kind::kVxlan) {
    append(out, net::Vxlan{.flags = net::Vxlan::kHasVni,
                           .vni_word = tunnel.id << net::Vxlan::kVniShift});
    return out;
  }
  const bool has_qfi = tunnel.qfi >= 0;
  const uint32_t extra_bytes = has_qfi ? sizeof(net::GtpuOptions) + sizeof(net::GtpuPduSession) : 0;
  const uint8_t flags = net::Gtpu::kPlain | (has_qfi ? net::Gtpu::kHasExtension : 0);
  append(out, net::Gtpu{.flags = flags,
                        .type = net::Gtpu::kPacket,
                        .length = static_cast<uint16_t>(payload_bytes + extra_bytes),
                        .teid = tunnel.id});
  if (!has_qfi) return out;
  append(out, net::GtpuOptions{.next_extension = net::GtpuPduSession::kExtension});
  append(out, net::GtpuPduSession{.length = 1,
                                  .pdu_type = net::GtpuPduSession::kUplink,
                                  .qfi = static_cast<uint8_t>(tunnel.qfi)});
  return out;
}

}  // namespace

std::vector<uint8_t> put_into_tunnel(const std::vector<uint8_t>& frame, uint32_t l3_bytes,
                                     const TunnelSpec& tunnel) {
  const bool is_gtpu = tunnel.kind == TunnelSpec::Kind::kGtpu;
  const uint32_t from = is_gtpu ? l3_bytes : 0;
  const std::vector<uint8_t> header =
      tunnel_header(tunnel, static_cast<uint32_t>(frame.size()) - from);
  const auto udp_bytes =
      static_cast<uint32_t>(net::kUdpBytes + header.size() + frame.size() - from);
  net::Ipv4 ip{.version_ihl = net::Ipv4::kPlain,
               .total_length = static_cast<uint16_t>(net::kIpv4Bytes + udp_bytes),
               .fragment = net::Ipv4::kDontFragment,
               .ttl = 64,
               .protocol = net::kProtoUdp,
               .src = tunnel.src_ip,
               .dst = tunnel.dst_ip};
  ip.checksum = net::checksum_finish(net::checksum_add(bytes_of(ip), sizeof ip));
  const uint16_t port = is_gtpu ? net::Gtpu::kPort : net::Vxlan::kPort;
  std::vector<uint8_t> out(frame.begin(), frame.begin() + l3_bytes);
  append(out, ip);
  append(out,
         net::Udp{.src_port = port, .dst_port = port, .length = static_cast<uint16_t>(udp_bytes)});
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), frame.begin() + from, frame.end());
  return out;
}

}  // namespace batchplane::traffic
