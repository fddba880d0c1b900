// SPDX-License-Identifier: BSD-3-Clause
// flow_spec.h - generated flows as the user describes them (`flows: [...]`).
//
// Sizes are wire sizes: `size_bytes: 64` is the smallest Ethernet frame including its 4-byte checksum, which
// leaves 60 bytes in the packet buffer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/net.h"
#include "core/module/args.h"
#include "traffic/tunnel_frame.h"

namespace batchplane::traffic {

inline constexpr uint32_t kFcsBytes = 4;
inline constexpr uint32_t kMinFrameBytes = 64;
inline constexpr uint32_t kMaxWireBytes = 9732;  // kMaxFrameBytes and the checksum
inline constexpr uint32_t kMaxFlows = 1U << 20;
inline constexpr int kNoVlan = -1;

struct SizeShare {
  uint32_t wire_bytes = kMinFrameBytes;
  double weight = 1;
};

struct FlowSpec {
  std::string name;
  double weight = 1;
  double rate_pps = 0;  // generator only; 0 = a share of the total by weight
  std::vector<SizeShare> sizes;
  net::Mac src_mac{};
  net::Mac dst_mac{};
  uint32_t src_ip = 0;
  uint32_t dst_ip = 0;
  uint16_t src_port = 0;
  uint16_t dst_port = 0;
  uint8_t ttl = 64;
  uint8_t proto = net::kProtoUdp;
  int vlan = kNoVlan;
  bool has_l4_checksum = false;
  TunnelSpec tunnel;
  std::vector<uint8_t> raw;  // the given frame, without checksum; the other fields are then unused
};

// Keys of one element of `flows`.
const std::vector<ParamSpec>& flow_params();
// `own` plus the traffic parameters: flows, size_bytes, imix, order, seed.
std::vector<ParamSpec> with_traffic_params(std::vector<ParamSpec> own);
// The longest frame in such parameters, before they are checked: sizes and raw frames at any depth.
uint64_t longest_frame_bytes(const Dict& params);
// The flows of `args` (declared by with_traffic_params), with `count` expanded. Throws ConfigError.
std::vector<FlowSpec> parse_flows(const Args& args);

// Parses a frame (without its checksum) in hexadecimal digits, ignoring blanks and colons. Throws ConfigError
// that names `where`.
std::vector<uint8_t> parse_frame_hex(const std::string& text, const std::string& where);

// Most common mix in benchmarks: frames of 64, 594 and 1518 bytes, 7 : 4 : 1.
std::vector<SizeShare> imix_sizes();

}  // namespace batchplane::traffic
