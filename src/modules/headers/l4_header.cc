// SPDX-License-Identifier: BSD-3-Clause
// l4_header.cc - finds the transport header behind the extension headers of IPv6.
#include "modules/headers/l4_header.h"

#include "modules/headers/ipv6_header.h"

namespace batchplane::l4 {

Place find_v6(const uint8_t* header, uint32_t room_bytes) noexcept {
  if (net::ip_version(header) != 6) return {.find = Find::kBadVersion};
  if (room_bytes < net::kIpv6Bytes) return {.find = Find::kTooShort};
  const auto& ip = header_at<net::Ipv6>(header);
  const uint32_t end = net::kIpv6Bytes + ip.payload_length;
  if (end > room_bytes) return {.find = Find::kBadTotalLength};
  const Extensions6 chain = walk_extensions6<TransportExtensions>(ip, end);
  // The final destination is not in the IPv6 header: no checksum could be computed.
  if (chain.has_segments_left) return {.find = Find::kOther};
  if (chain.end == Extensions6::End::kTruncated) return {.find = Find::kBadHeaderLength};
  if (chain.end == Extensions6::End::kTooMany) return {.find = Find::kOther};
  return {.find = chain.is_fragment ? Find::kFragment : Find::kWhole,
          .proto = chain.protocol,
          .is_v6 = true,
          .has_header = chain.is_first_fragment,
          .offset_bytes = chain.offset_bytes,
          .len_bytes = end - chain.offset_bytes};
}

}  // namespace batchplane::l4
