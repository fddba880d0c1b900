// SPDX-License-Identifier: BSD-3-Clause
// ipv6_header.h - walks over the extension headers of an IPv6 packet to the upper-layer header.
#pragma once

#include <cstdint>

#include "base/net_headers.h"

namespace batchplane {

namespace net {

// The start of all extension headers. The length is in units of 8 bytes, without the first 8; in an
// authentication header in units of 4.
struct [[gnu::may_alias]] Extension6 {
  uint8_t next_header;
  uint8_t length;
};

struct [[gnu::may_alias]] Routing6 {
  uint8_t next_header;
  uint8_t length;
  uint8_t type;
  uint8_t segments_left;
};

struct [[gnu::may_alias]] Fragment6 {
  uint8_t next_header;
  uint8_t reserved;
  Be16 place;  // the offset in bytes, two reserved bits, more fragments
  Be32 id;

  [[nodiscard]] bool is_fragment() const { return (place & 0xfff9) != 0; }
  [[nodiscard]] bool is_first() const { return place >> 3 == 0; }
};

}  // namespace net

// No valid packet has more; each costs a read at an address that depends on the header before.
inline constexpr uint32_t kMaxExtensionHeaders = 8;

// The headers that a walk skips; it ends at any other.
template <uint8_t... kKinds>
struct HeaderKinds {
  static constexpr bool has(uint8_t kind) { return ((kind == kKinds) || ...); }
};
using CommonExtensions =
    HeaderKinds<net::kNextHopByHop, net::kNextRouting, net::kNextFragment, net::kNextDestination>;
using TransportExtensions = HeaderKinds<net::kNextHopByHop, net::kNextRouting, net::kNextFragment,
                                        net::kNextDestination, net::kNextAuthentication>;
using AllExtensions =
    HeaderKinds<net::kNextHopByHop, net::kNextRouting, net::kNextFragment, net::kNextDestination,
                net::kNextAuthentication, net::kNextMobility>;

// Where a walk ended. A fragment other than the first ends it, since data follows.
struct Extensions6 {
  enum class End : uint8_t { kWhole, kTruncated, kTooMany };
  End end = End::kWhole;
  uint8_t protocol = net::kNextNone;  // named by the last header that was read
  bool is_fragment = false;           // has an offset, or more fragments follow
  bool is_first_fragment = true;      // also true for unfragmented packets
  bool has_late_hop_by_hop = false;   // RFC 8200, 4.1: allowed only right behind the IPv6 header
  bool has_segments_left = false;     // the IPv6 header does not have the final destination
  uint32_t n_headers = 0;             // headers skipped
  uint32_t fragment_bytes = 0;        // offset of the fragment header; 0 = none
  uint32_t offset_bytes = net::kIpv6Bytes;  // from the IPv6 header, to what `protocol` names
};

inline uint32_t extension_bytes6(uint8_t kind, const net::Extension6& header) {
  if (kind == net::kNextFragment) return sizeof(net::Fragment6);
  return kind == net::kNextAuthentication ? (header.length + 2U) * 4 : (header.length + 1U) * 8;
}

// Out of line, so that packets without extension headers pay nothing for it.
template <typename Kinds>
[[gnu::noinline]] Extensions6 walk_chain6(const net::Ipv6& ip, uint32_t len_bytes) {
  Extensions6 found{.protocol = ip.next_header};
  while (Kinds::has(found.protocol)) {
    const uint8_t kind = found.protocol;
    const auto& header = behind<net::Extension6>(ip, found.offset_bytes);
    const uint32_t left_bytes = len_bytes - found.offset_bytes;
    if (found.n_headers == kMaxExtensionHeaders) {
      return found.end = Extensions6::End::kTooMany, found;
    }
    if (left_bytes < 8) return found.end = Extensions6::End::kTruncated, found;
    found.protocol = header.next_header;
    found.has_late_hop_by_hop |= kind == net::kNextHopByHop && found.n_headers != 0;
    const uint32_t bytes = extension_bytes6(kind, header);
    if (bytes > left_bytes) return found.end = Extensions6::End::kTruncated, found;
    found.has_segments_left |= kind == net::kNextRouting &&
                               behind<net::Routing6>(ip, found.offset_bytes).segments_left != 0;
    if (kind == net::kNextFragment) {
      const auto& fragment = behind<net::Fragment6>(ip, found.offset_bytes);
      found.fragment_bytes = found.offset_bytes;
      found.is_fragment |= fragment.is_fragment();
      found.is_first_fragment = fragment.is_first();
    }
    ++found.n_headers;
    found.offset_bytes += bytes;
    if (!found.is_first_fragment) break;
  }
  return found;
}

// `ip` has `len_bytes` bytes, 40 at least.
template <typename Kinds>
inline Extensions6 walk_extensions6(const net::Ipv6& ip, uint32_t len_bytes) {
  const uint8_t protocol = ip.next_header;
  if (!Kinds::has(protocol)) [[likely]]
    return {.protocol = protocol};
  return walk_chain6<Kinds>(ip, len_bytes);
}

struct UpperLayer6 {
  enum class Fault : uint8_t { kNone, kTruncated, kTooMany, kMisplaced };
  uint8_t protocol = net::kNextNone;  // the upper-layer protocol
  uint32_t offset_bytes = 0;          // from the IPv6 header; 0 in later fragments
  uint32_t fragment_bytes = 0;        // offset of a fragment header; 0 = none
  Fault fault = Fault::kNone;

  // Whether the upper-layer header is in this packet.
  [[nodiscard]] bool is_here() const { return fault == Fault::kNone && offset_bytes != 0; }
};

// Strict, so that broken chains are not forwarded; `len_bytes` must not include padding.
inline UpperLayer6 upper_layer6(const net::Ipv6& ip, uint32_t len_bytes) {
  using Fault = UpperLayer6::Fault;
  const Extensions6 chain = walk_extensions6<AllExtensions>(ip, len_bytes);
  UpperLayer6 found{.protocol = chain.protocol,
                    .offset_bytes = chain.is_first_fragment ? chain.offset_bytes : 0,
                    .fragment_bytes = chain.fragment_bytes};
  if (chain.has_late_hop_by_hop) {
    found.fault = Fault::kMisplaced;
  } else if (chain.end != Extensions6::End::kWhole) {
    const bool is_truncated = chain.end == Extensions6::End::kTruncated;
    found.fault = is_truncated ? Fault::kTruncated : Fault::kTooMany;
  }
  return found;
}

// Whether an ICMPv6 type is an error message (RFC 4443, 2.1).
inline bool is_icmp6_error_type(uint8_t type) { return type < 128; }

}  // namespace batchplane
