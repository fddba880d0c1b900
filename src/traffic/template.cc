// SPDX-License-Identifier: BSD-3-Clause
// template.cc - builds frames from flow descriptions, and the weighted orders over them.
#include "traffic/template.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>

namespace batchplane::traffic {
namespace {

constexpr uint32_t kUdpBytes = 8;
constexpr uint32_t kTcpBytes = 20;

uint32_t write_ethernet(const FlowSpec& flow, uint8_t* p) {
  std::copy(flow.dst_mac.begin(), flow.dst_mac.end(), p);
  std::copy(flow.src_mac.begin(), flow.src_mac.end(), p + 6);
  if (flow.vlan == kNoVlan) {
    net::store16(p + 12, net::kTypeIpv4);
    return net::kEthBytes;
  }
  net::store16(p + 12, net::kTypeVlan);
  net::store16(p + 14, static_cast<uint16_t>(flow.vlan));
  net::store16(p + 16, net::kTypeIpv4);
  return net::kEthBytes + 4;
}

void write_ipv4(const FlowSpec& flow, uint8_t* ip, uint32_t ip_bytes) {
  ip[0] = 0x45;
  net::store16(ip + net::kIpTotalLength, static_cast<uint16_t>(ip_bytes));
  ip[net::kIpTtl] = flow.ttl;
  ip[net::kIpProto] = flow.proto;
  net::store32(ip + net::kIpSrc, flow.src_ip);
  net::store32(ip + net::kIpDst, flow.dst_ip);
  net::store16(ip + net::kIpChecksum, net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)));
}

uint16_t l4_checksum(const FlowSpec& flow, const uint8_t* l4, uint32_t l4_bytes) {
  uint8_t pseudo[12];
  net::store32(pseudo, flow.src_ip);
  net::store32(pseudo + 4, flow.dst_ip);
  pseudo[8] = 0;
  pseudo[9] = flow.proto;
  net::store16(pseudo + 10, static_cast<uint16_t>(l4_bytes));
  const uint16_t sum = net::checksum_finish(
      net::checksum_add(l4, l4_bytes, net::checksum_add(pseudo, sizeof(pseudo))));
  return flow.proto == net::kProtoUdp && sum == 0 ? 0xffff : sum;
}

void write_l4(const FlowSpec& flow, uint8_t* l4, uint32_t l4_bytes) {
  const bool is_udp = flow.proto == net::kProtoUdp;
  const uint32_t header_bytes = is_udp ? kUdpBytes : kTcpBytes;
  net::store16(l4, flow.src_port);
  net::store16(l4 + 2, flow.dst_port);
  if (is_udp) {
    net::store16(l4 + 4, static_cast<uint16_t>(l4_bytes));
  } else {
    l4[12] = (kTcpBytes / 4) << 4;
    l4[13] = 0x10;  // ACK
    net::store16(l4 + 14, 0xffff);
  }
  for (uint32_t i = header_bytes; i < l4_bytes; ++i) l4[i] = static_cast<uint8_t>(i - header_bytes);
  if (flow.has_l4_checksum) net::store16(l4 + (is_udp ? 6 : 16), l4_checksum(flow, l4, l4_bytes));
}

uint64_t round_up_64(uint64_t n) { return (n + 63) & ~63ULL; }

}  // namespace

Order parse_order(const std::string& name) {
  return name == "random" ? Order::kRandom : Order::kRoundRobin;
}

std::vector<uint8_t> build_frame(const FlowSpec& flow, uint32_t wire_bytes) {
  if (!flow.raw.empty()) return flow.raw;
  std::vector<uint8_t> frame(wire_bytes - kFcsBytes);
  const uint32_t l3 = write_ethernet(flow, frame.data());
  const auto ip_bytes = static_cast<uint32_t>(frame.size()) - l3;
  write_l4(flow, frame.data() + l3 + net::kIpv4Bytes, ip_bytes - net::kIpv4Bytes);
  write_ipv4(flow, frame.data() + l3, ip_bytes);
  if (flow.tunnel.kind != TunnelSpec::Kind::kNone) return put_into_tunnel(frame, l3, flow.tunnel);
  return frame;
}

TemplateSet::TemplateSet(const std::vector<FlowSpec>& flows, Order order, uint64_t seed)
    : turns_(order, seed) {
  uint64_t arena_bytes = 0;
  for (const FlowSpec& flow : flows) {
    for (const SizeShare& size : flow.sizes) {
      const bool is_tunnelled = flow.tunnel.kind != TunnelSpec::Kind::kNone;
      const uint64_t most_bytes = size.wire_bytes + (is_tunnelled ? kMostTunnelBytes : 0);
      arena_bytes += round_up_64(flow.raw.empty() ? most_bytes : flow.raw.size());
    }
  }
  if (arena_bytes > kMaxArenaBytes) {
    throw ConfigError("the frames of " + std::to_string(flows.size()) + " flows need " +
                          std::to_string(arena_bytes >> 20) + " MB",
                      "",
                      "use fewer flows or smaller frames: " + std::to_string(kMaxArenaBytes >> 20) +
                          " MB at most");
  }
  arena_.reset(new (std::align_val_t{64}) uint8_t[arena_bytes]());
  uint8_t* at = arena_.get();
  std::vector<double> flow_weights;
  for (uint32_t f = 0; f < flows.size(); ++f) {
    const FlowSpec& flow = flows[f];
    flow_weights.push_back(flow.weight);
    double sum = 0;
    for (const SizeShare& size : flow.sizes) sum += size.weight;
    for (const SizeShare& size : flow.sizes) {
      const std::vector<uint8_t> frame = build_frame(flow, size.wire_bytes);
      std::copy(frame.begin(), frame.end(), at);
      frames_.push_back({at, static_cast<uint32_t>(frame.size()), f});
      size_share_.push_back(size.weight / sum);
      max_len_bytes_ = std::max(max_len_bytes_, frames_.back().len_bytes);
      at += round_up_64(frame.size());
    }
  }
  set_weights(flow_weights);
}

void TemplateSet::set_weights(const std::vector<double>& flow_weights) {
  std::vector<double> weights(frames_.size());
  for (size_t i = 0; i < frames_.size(); ++i) {
    weights[i] = flow_weights[frames_[i].flow] * size_share_[i];
  }
  // Flows with a rate of their own are not drawn from here; with nothing else any order does.
  if (std::accumulate(weights.begin(), weights.end(), 0.0) <= 0) weights = size_share_;
  turns_.set_weights(weights);
  weights_ = std::move(weights);
}

double TemplateSet::mean_len_bytes() const {
  double bytes = 0;
  double sum = 0;
  for (size_t i = 0; i < frames_.size(); ++i) {
    bytes += weights_[i] * frames_[i].len_bytes;
    sum += weights_[i];
  }
  return bytes / sum;
}

}  // namespace batchplane::traffic
