// SPDX-License-Identifier: BSD-3-Clause
// tunnel_frame.h - generated packets that are already tunnelled: GTP-U or VXLAN over UDP and IPv4.
#pragma once

#include <cstdint>
#include <vector>

#include "base/net.h"

namespace batchplane::traffic {

struct TunnelSpec {
  enum class Kind : uint8_t { kNone, kGtpu, kVxlan };
  Kind kind = Kind::kNone;
  int qfi = -1;  // GTP-U: QFI of a PDU session container; -1 = none
  uint32_t id = 0;
  uint32_t src_ip = 0;
  uint32_t dst_ip = 0;
};

inline constexpr uint32_t kMaxTunnelBytes = 58;  // largest overhead of a tunnel

// Encapsulates `frame`, an IP packet behind an Ethernet header of `l3_bytes`; GTP-U carries it without
// Ethernet header and padding.
[[nodiscard]] std::vector<uint8_t> put_into_tunnel(const std::vector<uint8_t>& frame,
                                                   uint32_t l3_bytes, const TunnelSpec& tunnel);

}  // namespace batchplane::traffic
