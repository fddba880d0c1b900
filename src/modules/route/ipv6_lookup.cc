// SPDX-License-Identifier: BSD-3-Clause
// ipv6_lookup.cc - sends each packet to the gate of its longest matching route, with the next hop
// in its metadata.
//
// in: 1   out: by route   drops: no_route, route_drop, reverse_path, closed_interface, too_short
// thread-safe: table edits while workers look up
#include "core/module/register.h"
#include "modules/route/lookup_module.h"

namespace batchplane {
namespace {

const Register<LookupModule<Ipv6Family>> kIpv6Lookup{{
    .kind = "ipv6_lookup",
    .state = StateOf::kShared,
    .help = "Longest-prefix match on the IPv6 destination; the route gives gate and next hop.",
    .params = lookup_params<Ipv6Family>(),
    .gate_names = {"forward", "local"},
    .drops = {&reason::kNoRoute, &reason::kRouteDrop, &kReversePath, &kClosedInterface,
              &reason::kTooShort},
    .notes = route_notes<Ipv6Family>(),
    .is_for_ipv6 = true,
    .tables = &route_table_memory<Ipv6Family>,
}};

}  // namespace
}  // namespace batchplane
