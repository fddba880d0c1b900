// SPDX-License-Identifier: BSD-3-Clause
// router_advertiser.cc - parses advertisements, builds the messages once, and schedules them.
#include "modules/neighbour/router_advertiser.h"

#include <algorithm>

#include "base/error.h"
#include "modules/icmp/icmp6.h"

namespace batchplane {
namespace {

// RFC 4861, section 10.
constexpr uint64_t kMinGapNs = 3'000'000'000;
constexpr uint64_t kInitialIntervalNs = 16'000'000'000;
constexpr uint32_t kInitialSent = 3;

constexpr uint8_t kHopLimit = 64;

uint32_t seconds_in(const Value& value, const std::string& where, uint32_t otherwise,
                    int64_t most) {
  if (value.is_null()) return otherwise;
  if (!value.is_int() || value.as_int() < 0 || value.as_int() > most) {
    throw ConfigError("expected seconds from 0 to " + std::to_string(most), where);
  }
  return static_cast<uint32_t>(value.as_int());
}

uint8_t units_of(size_t bytes) { return static_cast<uint8_t>(bytes / net::NdOption::kUnitBytes); }

List list_of(const Value& value) {
  if (value.is_null()) return {};
  return value.is_list() ? value.as_list() : List{value};
}

Advertisement parse(const std::vector<Interface>& interfaces, const Value& value,
                    const std::string& where) {
  if (!value.is_dict()) {
    throw ConfigError("expected a mapping", where,
                      "such as {interface: lan, prefix: \"2001:db8:1::/64\"}");
  }
  const std::vector<std::string> known = {
      "interface",         "prefix",           "dns",
      "router_lifetime_s", "valid_lifetime_s", "preferred_lifetime_s"};
  for (const auto& [key, item] : value.as_dict()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    throw ConfigError("unknown key '" + key + "'", where,
                      "it has interface, prefix, dns, router_lifetime_s, valid_lifetime_s, "
                      "preferred_lifetime_s");
  }
  Advertisement found;
  const auto interface = std::ranges::find_if(interfaces, [&](const Interface& candidate) {
    return value["interface"].is_string() && candidate.name == value["interface"].as_string();
  });
  if (interface == interfaces.end()) {
    throw ConfigError("there is no such interface", where + ".interface",
                      "name one of the pipeline's interfaces");
  }
  found.interface = interface->index;
  for (const Value& text : list_of(value["prefix"])) {
    const auto prefix = text.is_string() ? net::parse_prefix6(text.as_string()) : std::nullopt;
    if (!prefix || prefix->address.is_multicast() || prefix->address.is_link_local()) {
      throw ConfigError("expected an IPv6 prefix of unicast addresses", where + ".prefix",
                        "such as 2001:db8:1::/64, host bits zero");
    }
    found.prefixes.push_back(*prefix);
  }
  for (const Value& text : list_of(value["dns"])) {
    const auto server = text.is_string() ? net::parse_ipv6(text.as_string()) : std::nullopt;
    if (!server) throw ConfigError("expected an IPv6 address", where + ".dns");
    found.dns_servers.push_back(*server);
  }
  if (found.prefixes.size() > 16 || found.dns_servers.size() > 8) {
    throw ConfigError("at most 16 prefixes and 8 DNS servers fit an advertisement", where);
  }
  found.router_lifetime_s = static_cast<uint16_t>(seconds_in(
      value["router_lifetime_s"], where + ".router_lifetime_s", found.router_lifetime_s, 9000));
  found.valid_lifetime_s = seconds_in(value["valid_lifetime_s"], where + ".valid_lifetime_s",
                                      found.valid_lifetime_s, 0xffffffff);
  found.preferred_lifetime_s =
      seconds_in(value["preferred_lifetime_s"], where + ".preferred_lifetime_s",
                 std::min(found.preferred_lifetime_s, found.valid_lifetime_s), 0xffffffff);
  if (found.preferred_lifetime_s > found.valid_lifetime_s) {
    throw ConfigError("preferred_lifetime_s is longer than valid_lifetime_s", where,
                      "an address cannot be preferred when it is no longer valid");
  }
  return found;
}

net::NdPrefixOption prefix_option(const net::Prefix6& prefix, const Advertisement& from) {
  using Option = net::NdPrefixOption;
  // RFC 4862, 5.5.3: on Ethernet, address autoconfiguration works only with /64 prefixes.
  const uint8_t flags =
      prefix.length == 64 ? Option::kOnLink | Option::kAutonomous : Option::kOnLink;
  return {.type = Option::kType,
          .length = units_of(sizeof(Option)),
          .prefix_bits = prefix.length,
          .flags = flags,
          .valid_lifetime_s = from.valid_lifetime_s,
          .preferred_lifetime_s = from.preferred_lifetime_s,
          .prefix = prefix.address};
}

std::vector<uint8_t> frame_of(const Interface& interface, const Advertisement& from) {
  const auto n_dns = static_cast<uint32_t>(from.dns_servers.size());
  const uint32_t dns_bytes = n_dns == 0 ? 0 : sizeof(net::NdDnsOption) + sizeof(net::Be128) * n_dns;
  const auto bytes = static_cast<uint32_t>(
      sizeof(net::NdRouterAdvertisement) + sizeof(net::NdMacOption) + sizeof(net::NdMtuOption) +
      sizeof(net::NdPrefixOption) * from.prefixes.size() + dns_bytes);
  std::vector<uint8_t> frame(net::kEthBytes + net::kIpv6Bytes + bytes);
  net::Address6 source = net::link_local_of(interface.mac);
  for (const net::Prefix6& own : interface.addresses6) {
    if (own.address.is_link_local()) source = own.address;
  }
  arp::write_eth(frame.data(), net::group_mac(net::kAllNodes), interface.mac, net::kTypeIpv6);
  auto& ip = header_at<net::Ipv6>(&frame[net::kEthBytes]);
  icmp6::write_ip(ip, source, net::kAllNodes, bytes, icmp6::kOnLinkHopLimit);
  auto& message = behind<net::NdRouterAdvertisement>(ip);
  message = {.type = icmp6::kRouterAdvertisement,
             .hop_limit = kHopLimit,
             .router_lifetime_s = from.router_lifetime_s};
  auto& mac = behind<net::NdMacOption>(message);
  icmp6::write_mac_option(mac, icmp6::kSourceMac, interface.mac);
  auto& mtu = behind<net::NdMtuOption>(mac);
  mtu = {.type = net::NdMtuOption::kType, .length = 1, .mtu = interface.mtu_bytes};
  auto* prefix_at = &behind<net::NdPrefixOption>(mtu);
  for (const net::Prefix6& prefix : from.prefixes) *prefix_at++ = prefix_option(prefix, from);
  if (n_dns != 0) {
    auto& dns = header_at<net::NdDnsOption>(bytes_of(*prefix_at));
    dns = {.type = net::NdDnsOption::kType,
           .length = units_of(dns_bytes),
           .lifetime_s = from.router_lifetime_s};
    std::ranges::copy(from.dns_servers, &behind<net::Be128>(dns));
  }
  icmp6::write_checksum(ip, bytes);
  return frame;
}

}  // namespace

RouterAdvertiser::RouterAdvertiser(const std::vector<Interface>& interfaces, const List& list,
                                   const std::string& where, uint64_t interval_ns)
    : interval_ns_(interval_ns) {
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string at = where + ".advertise[" + std::to_string(i) + "]";
    const Advertisement found = parse(interfaces, list[i], at);
    if (std::ranges::find(links_, found.interface, &Link::interface) != links_.end()) {
      throw ConfigError("the interface advertises already", at, "give all prefixes in one entry");
    }
    links_.push_back(
        {.interface = found.interface, .frame = frame_of(interfaces[found.interface], found)});
  }
}

void RouterAdvertiser::solicited(uint64_t now_ns, uint16_t interface) noexcept {
  for (Link& link : links_) {
    if (link.interface != interface) continue;
    // RFC 4861, 6.2.6: solicitations within 3 s of an advertisement share one reply, which also
    // bounds floods. The random delay is below 0.5 s.
    const uint64_t earliest_ns = link.n_sent == 0 ? now_ns : link.last_ns + kMinGapNs;
    const uint64_t delayed_ns = now_ns + rng_.below(500) * 1'000'000ULL;
    link.due_ns = std::min(link.due_ns, std::max(earliest_ns, delayed_ns));
  }
}

void RouterAdvertiser::plan_next(uint64_t now_ns, Link& link) noexcept {
  ++sent_;
  ++link.n_sent;
  link.last_ns = now_ns;
  // Between a third of the interval and the whole, so that routers do not synchronise.
  const uint64_t wait_ns = interval_ns_ / 3 + (interval_ns_ / 3 * 2) / 1000 * rng_.below(1001);
  link.due_ns =
      now_ns + (link.n_sent <= kInitialSent ? std::min(wait_ns, kInitialIntervalNs) : wait_ns);
}

}  // namespace batchplane
