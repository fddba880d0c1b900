// SPDX-License-Identifier: BSD-3-Clause
// ipv6_header.h - the walk over the extension headers of an IPv6 packet, to what lies behind them.
#pragma once

#include <cstdint>

#include "base/net_headers.h"

namespace batchplane {

namespace net {

// What all extension headers begin with; the length counts 8 bytes each, without the first 8, and of
// an authentication header 4 each.
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

// No honest packet has more; each costs a read of a place that is only known from the one before.
inline constexpr uint32_t kMaxExtensionHeaders = 8;

// The headers that a walk passes over; it ends at any other.
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

// What a walk came to. A later fragment ends it: what follows is data.
struct Extensions6 {
  enum class End : uint8_t { kWhole, kTruncated, kTooMany };
  End end = End::kWhole;
  uint8_t protocol = net::kNextNone;  // named by the last header that was read
  bool is_fragment = false;           // with an offset, or with more to come
  bool is_first_fragment = true;      // also of a packet that is no fragment
  bool has_late_hop_by_hop = false;   // RFC 8200, 4.1: only right behind the IPv6 header
  bool has_segments_left = false;     // the last destination is not the one in the IPv6 header
  uint32_t n_headers = 0;             // that were passed over
  uint32_t fragment_bytes = 0;        // offset of the fragment header; 0 = none
  uint32_t offset_bytes = net::kIpv6Bytes;  // from the IPv6 header, to what `protocol` names
};

inline uint32_t extension_bytes6(uint8_t kind, const net::Extension6& header) {
  if (kind == net::kNextFragment) return sizeof(net::Fragment6);
  return kind == net::kNextAuthentication ? (header.length + 2U) * 4 : (header.length + 1U) * 8;
}

// Out of line, so that it costs nothing where there are none.
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
  uint8_t protocol = net::kNextNone;  // of the first header that is no extension header
  uint32_t offset_bytes = 0;          // from the IPv6 header; 0 in later fragments
  uint32_t fragment_bytes = 0;        // offset of a fragment header; 0 = none
  Fault fault = Fault::kNone;

  // Of a packet with such a header, or of its first fragment.
  [[nodiscard]] bool is_here() const { return fault == Fault::kNone && offset_bytes != 0; }
};

// Strict, as a router that keeps broken chains from others; no padding within `len_bytes`.
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

// Whether an ICMPv6 type is an error's (RFC 4443, 2.1).
inline bool is_icmp6_error_type(uint8_t type) { return type < 128; }

}  // namespace batchplane
