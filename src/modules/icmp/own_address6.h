// SPDX-License-Identifier: BSD-3-Clause
// own_address6.h - the router's own IPv6 addresses, and its source address for a receiver.
#pragma once

#include <vector>

#include "core/module/environment.h"

namespace batchplane {

// A link-local address counts only on its own link.
inline bool is_own6(const std::vector<Interface>& interfaces, uint16_t in,
                    const net::Address6& address) {
  for (const Interface& interface : interfaces) {
    if (address.is_link_local() && in < interfaces.size() && interface.index != in) continue;
    for (const net::Prefix6& own : interface.addresses6) {
      if (own.address == address) return true;
    }
  }
  return false;
}

// Source selection (RFC 6724, reduced): same scope as the receiver; on interface `in`, preferably
// in the receiver's subnet; else, unless link-local, on any interface. :: when there is none.
inline net::Address6 own_source6(const std::vector<Interface>& interfaces, uint16_t in,
                                 const net::Address6& receiver) {
  net::Address6 on_interface;
  net::Address6 anywhere;
  for (const Interface& interface : interfaces) {
    const bool is_in = in >= interfaces.size() || interface.index == in;
    if (receiver.is_link_local() && !is_in) continue;
    for (const net::Prefix6& own : interface.addresses6) {
      if (own.address.is_link_local() != receiver.is_link_local()) continue;
      if (is_in && net::holds(own, receiver)) return own.address;
      if (is_in && on_interface.is_unspecified()) on_interface = own.address;
      if (anywhere.is_unspecified()) anywhere = own.address;
    }
  }
  return on_interface.is_unspecified() ? anywhere : on_interface;
}

}  // namespace batchplane
