// SPDX-License-Identifier: BSD-3-Clause
#include "ports/frame_filter.h"

#include <algorithm>
#include <cstring>

namespace batchplane::ports {
namespace {

// Groups of all hosts and all routers on a link, for IPv4 and IPv6.
constexpr net::Mac kJoined[] = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
                                {0x01, 0x00, 0x5e, 0x00, 0x00, 0x01},
                                {0x01, 0x00, 0x5e, 0x00, 0x00, 0x02},
                                {0x33, 0x33, 0x00, 0x00, 0x00, 0x01},
                                {0x33, 0x33, 0x00, 0x00, 0x00, 0x02}};

// RFC 4291, 2.7.1, and RFC 2464, 7: the group to which neighbour solicitations for the address go.
net::Mac solicited_group_of(const net::Address6& address) {
  return {0x33,
          0x33,
          0xff,
          static_cast<uint8_t>(address.low >> 16),
          static_cast<uint8_t>(address.low >> 8),
          static_cast<uint8_t>(address.low)};
}

template <class T>
void make_sorted(std::vector<T>& all) {
  std::ranges::sort(all);
  const auto doubles = std::ranges::unique(all);
  all.erase(doubles.begin(), doubles.end());
}

}  // namespace

uint64_t FrameFilter::word_of(const net::Mac& mac) {
  uint64_t word = 0;
  std::memcpy(&word, mac.data(), mac.size());
  return word;
}

FrameFilter::FrameFilter(const std::vector<Interface>& interfaces, const Interface& interface)
    : own_(word_of(interface.mac)) {
  for (const net::Mac& mac : kJoined) macs_.push_back(word_of(mac));
  for (const Interface& each : interfaces) {
    if (each.port != interface.port) continue;
    macs_.push_back(word_of(each.mac));
    for (const net::Prefix6& own : each.addresses6) {
      macs_.push_back(word_of(solicited_group_of(own.address)));
    }
    for (const net::Prefix4& own : each.addresses) {
      addresses_.push_back(own.address);
      addresses_.push_back(own.address | ~net::mask4(own.length));
    }
  }
  make_sorted(macs_);
  make_sorted(addresses_);
}

const DropReason* FrameFilter::refusal_of(Packet& pkt) const noexcept {
  if (pkt.len_bytes() < net::kEthBytes) return nullptr;
  const uint64_t mac = load64_raw(pkt.data()) & kMacMask;
  if (mac == own_) return nullptr;
  if (!std::ranges::binary_search(macs_, mac)) return &kNotOurMac;
  const bool is_group = (header_in<net::Ethernet>(pkt, 0).dst[0] & 1) != 0;
  return is_group && names_one_other_host(pkt) ? &kUnicastInGroup : nullptr;
}

// RFC 1812, 5.3.4: such a packet must not be forwarded.
bool FrameFilter::names_one_other_host(Packet& pkt) const noexcept {
  const uint16_t type = header_in<net::Ethernet>(pkt, 0).type;
  if (type == net::kTypeIpv4 && pkt.len_bytes() >= net::kEthBytes + net::kIpv4Bytes) {
    const uint32_t dst = header_in<net::Ipv4>(pkt, net::kEthBytes).dst;
    return dst < 0xe0000000 && !std::ranges::binary_search(addresses_, dst);
  }
  if (type == net::kTypeIpv6 && pkt.len_bytes() >= net::kEthBytes + net::kIpv6Bytes) {
    return !net::Address6(header_in<net::Ipv6>(pkt, net::kEthBytes).dst).is_multicast();
  }
  return false;
}

}  // namespace batchplane::ports
