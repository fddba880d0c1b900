// SPDX-License-Identifier: BSD-3-Clause
// template.cc - builds frames from flow descriptions, and the weighted order over them.
#include "traffic/template.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>

#include "base/net_headers.h"

namespace batchplane::traffic {
namespace {

uint32_t write_ethernet(const FlowSpec& flow, uint8_t* frame) {
  auto& eth = header_at<net::Ethernet>(frame);
  eth = {.dst = flow.dst_mac, .src = flow.src_mac, .type = net::kTypeIpv4};
  if (flow.vlan == kNoVlan) return net::kEthBytes;
  eth.type = net::kTypeVlan;
  header_at<net::VlanTag>(frame + net::kMacPairBytes).control = static_cast<uint16_t>(flow.vlan);
  header_at<net::Be16>(frame + net::kEthBytes + sizeof(net::Be16)) = net::kTypeIpv4;
  return net::kEthBytes + net::kVlanTagBytes;
}

void write_ipv4(const FlowSpec& flow, net::Ipv4& ip, uint32_t ip_bytes) {
  ip = {.version_ihl = net::Ipv4::kPlain,
        .total_length = static_cast<uint16_t>(ip_bytes),
        .ttl = flow.ttl,
        .protocol = flow.proto,
        .src = flow.src_ip,
        .dst = flow.dst_ip};
  ip.checksum = net::checksum_finish(net::checksum_add(bytes_of(ip), sizeof ip));
}

uint16_t l4_checksum(const FlowSpec& flow, const uint8_t* l4, uint32_t l4_bytes) {
  const net::PseudoHeader4 pseudo{.src = flow.src_ip,
                                  .dst = flow.dst_ip,
                                  .protocol = flow.proto,
                                  .length = static_cast<uint16_t>(l4_bytes)};
  const uint32_t seed = net::checksum_add(bytes_of(pseudo), sizeof pseudo);
  const uint16_t sum = net::checksum_finish(net::checksum_add(l4, l4_bytes, seed));
  return flow.proto == net::kProtoUdp && sum == 0 ? 0xffff : sum;
}

void write_l4(const FlowSpec& flow, uint8_t* l4, uint32_t l4_bytes) {
  const bool is_udp = flow.proto == net::kProtoUdp;
  const uint32_t header_bytes = is_udp ? net::kUdpBytes : net::kTcpBytes;
  for (uint32_t i = header_bytes; i < l4_bytes; ++i) l4[i] = static_cast<uint8_t>(i - header_bytes);
  if (is_udp) {
    header_at<net::Udp>(l4) = {.src_port = flow.src_port,
                               .dst_port = flow.dst_port,
                               .length = static_cast<uint16_t>(l4_bytes)};
  } else {
    header_at<net::Tcp>(l4) = {.src_port = flow.src_port,
                               .dst_port = flow.dst_port,
                               .data_offset = net::Tcp::kPlain,
                               .flags = net::Tcp::kAck,
                               .window = 0xffff};
  }
  if (!flow.has_l4_checksum) return;
  const uint16_t sum = l4_checksum(flow, l4, l4_bytes);
  (is_udp ? header_at<net::Udp>(l4).checksum : header_at<net::Tcp>(l4).checksum) = sum;
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
  write_ipv4(flow, header_at<net::Ipv4>(frame.data() + l3), ip_bytes);
  if (flow.tunnel.kind != TunnelSpec::Kind::kNone) return put_into_tunnel(frame, l3, flow.tunnel);
  return frame;
}

TemplateSet::TemplateSet(const std::vector<FlowSpec>& flows, Order order, uint64_t seed)
    : turns_(order, seed) {
  uint64_t arena_bytes = 0;
  for (const FlowSpec& flow : flows) {
    for (const SizeShare& size : flow.sizes) {
      const bool is_tunnelled = flow.tunnel.kind != TunnelSpec::Kind::kNone;
      const uint64_t max_bytes = size.wire_bytes + (is_tunnelled ? kMaxTunnelBytes : 0);
      arena_bytes += round_up_64(flow.raw.empty() ? max_bytes : flow.raw.size());
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
  // Flows with their own rate are not drawn from here; if there are no others, any order will do.
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
