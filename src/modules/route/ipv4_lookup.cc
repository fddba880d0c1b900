// SPDX-License-Identifier: BSD-3-Clause
// ipv4_lookup.cc - sends each packet to the gate of its longest matching route, with the next hop
// in its metadata.
//
// in: 1   out: by route   drops: no_route, route_drop, reverse_path, closed_interface, too_short
// thread-safe: table edits while workers look up
#include "core/module/register.h"
#include "modules/route/lookup_module.h"

namespace batchplane {
namespace {

const Register<LookupModule<Ipv4Family>> kIpv4Lookup{{
    .kind = "ipv4_lookup",
    .state = StateOf::kShared,
    .help = "Longest-prefix match on the IPv4 destination; the route gives gate and next hop.",
    .params = lookup_params<Ipv4Family>(),
    .gate_names = {"forward", "local"},
    .drops = {&reason::kNoRoute, &reason::kRouteDrop, &kReversePath, &kClosedInterface,
              &reason::kTooShort},
    .notes = route_notes<Ipv4Family>(),
    .tables = &route_table_memory<Ipv4Family>,
}};

}  // namespace
}  // namespace batchplane
