// SPDX-License-Identifier: BSD-3-Clause
// route_family.h - the differences between the route tables of IPv4 and IPv6.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/net6.h"
#include "core/module/environment.h"
#include "modules/route/fib.h"
#include "modules/route/fib6.h"
#include "modules/route/next_hop.h"

namespace batchplane {

struct Ipv4Family {
  using Address = uint32_t;
  using Prefix = net::Prefix4;
  using Fib = batchplane::Fib;

  static constexpr const char* kName = "IPv4";
  static constexpr const char* kAnAddress = "such as 10.0.0.1";
  static constexpr const char* kAPrefix = "such as 10.0.0.0/8, host bits zero";
  static constexpr const char* kARoute = "such as {prefix: 10.0.0.0/8, gate: 1}";
  static constexpr int kBits = 32;

  static std::optional<Address> parse(const std::string& text) { return net::parse_ipv4(text); }
  static std::optional<Prefix> parse_prefix(const std::string& text) {
    return net::parse_prefix4(text);
  }
  static std::string format(Address address) { return net::format_ipv4(address); }
  static std::string format(const Prefix& prefix) { return net::format_prefix4(prefix); }
  static Address mask(uint32_t length) { return net::mask4(length); }
  static bool is_zero(Address address) { return address == 0; }
  static bool is_unicast(Address address) { return address != 0 && address < 0xe0000000; }
  static Address& gateway(NextHop& hop) { return hop.gateway; }
  static Address gateway(const NextHop& hop) { return hop.gateway; }
  static const std::vector<Prefix>& addresses(const Interface& interface) {
    return interface.addresses;
  }
  // Whether an address is link-scope and thus needs an interface.
  static bool is_on_any_link(Address) { return false; }
};

struct Ipv6Family {
  using Address = net::Address6;
  using Prefix = net::Prefix6;
  using Fib = Fib6;

  static constexpr const char* kName = "IPv6";
  static constexpr const char* kAnAddress = "such as 2001:db8::1";
  static constexpr const char* kAPrefix = "such as 2001:db8::/32, host bits zero";
  static constexpr const char* kARoute = "such as {prefix: \"2001:db8::/32\", gate: 1}";
  static constexpr int kBits = 128;

  static std::optional<Address> parse(const std::string& text) { return net::parse_ipv6(text); }
  static std::optional<Prefix> parse_prefix(const std::string& text) {
    return net::parse_prefix6(text);
  }
  static std::string format(const Address& address) { return net::format_ipv6(address); }
  static std::string format(const Prefix& prefix) { return net::format_prefix6(prefix); }
  static Address mask(uint32_t length) { return net::mask6(length); }
  static bool is_zero(const Address& address) { return address.is_unspecified(); }
  static bool is_unicast(const Address& address) {
    return !address.is_unspecified() && !address.is_loopback() && !address.is_multicast();
  }
  static Address& gateway(NextHop& hop) { return hop.gateway6; }
  static const Address& gateway(const NextHop& hop) { return hop.gateway6; }
  static const std::vector<Prefix>& addresses(const Interface& interface) {
    return interface.addresses6;
  }
  static bool is_on_any_link(const Address& address) { return address.is_link_local(); }
};

}  // namespace batchplane
