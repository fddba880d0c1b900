// SPDX-License-Identifier: BSD-3-Clause
// nd_headers.h - neighbour discovery messages and options (RFC 4861, 8106) as views.
#pragma once

#include "base/net_headers.h"

namespace batchplane::net {

// A solicitation or an advertisement, without options.
struct [[gnu::may_alias]] NdNeighbour {
  uint8_t type;
  uint8_t code;
  Be16 checksum;
  uint8_t flags;
  uint8_t reserved[3];
  Be128 target;
};
static_assert(sizeof(NdNeighbour) == 24);

struct [[gnu::may_alias]] NdRouterAdvertisement {
  uint8_t type;
  uint8_t code;
  Be16 checksum;
  uint8_t hop_limit;
  uint8_t flags;
  Be16 router_lifetime_s;
  Be32 reachable_ms;
  Be32 retransmit_ms;
};
static_assert(sizeof(NdRouterAdvertisement) == 16);

// The start of all options.
struct [[gnu::may_alias]] NdOption {
  static constexpr uint32_t kUnitBytes = 8;

  uint8_t type;
  uint8_t length;  // in units of kUnitBytes

  [[nodiscard]] uint32_t bytes() const { return length * kUnitBytes; }
};

struct [[gnu::may_alias]] NdMacOption {
  uint8_t type;
  uint8_t length;
  Mac mac;
};
static_assert(sizeof(NdMacOption) == NdOption::kUnitBytes);

struct [[gnu::may_alias]] NdMtuOption {
  static constexpr uint8_t kType = 5;

  uint8_t type;
  uint8_t length;
  Be16 reserved;
  Be32 mtu;
};
static_assert(sizeof(NdMtuOption) == NdOption::kUnitBytes);

struct [[gnu::may_alias]] NdPrefixOption {
  static constexpr uint8_t kType = 3;
  static constexpr uint8_t kOnLink = 0x80;
  static constexpr uint8_t kAutonomous = 0x40;

  uint8_t type;
  uint8_t length;
  uint8_t prefix_bits;
  uint8_t flags;
  Be32 valid_lifetime_s;
  Be32 preferred_lifetime_s;
  Be32 reserved;
  Be128 prefix;
};
static_assert(sizeof(NdPrefixOption) == 4 * NdOption::kUnitBytes);

// The addresses of the servers follow.
struct [[gnu::may_alias]] NdDnsOption {
  static constexpr uint8_t kType = 25;

  uint8_t type;
  uint8_t length;
  Be16 reserved;
  Be32 lifetime_s;
};
static_assert(sizeof(NdDnsOption) == NdOption::kUnitBytes);

}  // namespace batchplane::net
