// SPDX-License-Identifier: BSD-3-Clause
// egress.cc - schedules of arrivals through a packet scheduler and a link, as columns.
#include "egress.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <vector>

#include "egress/arbiter/link.h"
#include "egress/arbiter/replay.h"
#include "egress/discipline/disciplines.h"

namespace batchplane::native {
namespace {

namespace nb = nanobind;
using Numbers = std::vector<uint64_t>;

// flows: weight, lmax_bytes, limit_pkts by flow. arrivals: ns, flow, bytes. Returns departures
// (release_ns, flow, bytes) and the indices of the arrivals that were refused.
nb::tuple replay(const std::string& discipline, const std::vector<Numbers>& flows,
                 const std::vector<Numbers>& arrivals, uint64_t rate_bps, uint32_t overhead_bytes) {
  std::vector<egress::FlowParams> params(flows.at(0).size());
  for (size_t f = 0; f < params.size(); ++f) {
    params[f] = {.weight = static_cast<uint32_t>(flows[0][f]),
                 .lmax_bytes = static_cast<uint32_t>(flows.at(1).at(f)),
                 .limit_pkts = static_cast<uint32_t>(flows.at(2).at(f))};
  }
  std::vector<egress::Arrival> given(arrivals.at(0).size());
  for (size_t k = 0; k < given.size(); ++k) {
    given[k] = {.at_ns = arrivals[0][k],
                .flow = static_cast<uint32_t>(arrivals.at(1).at(k)),
                .len_bytes = static_cast<uint32_t>(arrivals.at(2).at(k))};
  }
  const egress::ReplayResult result =
      egress::replay(discipline, params, given, rate_bps, overhead_bytes);
  Numbers release_ns;
  Numbers flow;
  Numbers bytes;
  for (const egress::Departure& departure : result.departures) {
    release_ns.push_back(departure.release_ns);
    flow.push_back(departure.flow);
    bytes.push_back(departure.len_bytes);
  }
  return nb::make_tuple(release_ns, flow, bytes, result.refused);
}

}  // namespace

void add_egress(nb::module_& m) {
  m.def("egress_replay", &replay, nb::arg("discipline"), nb::arg("flows"), nb::arg("arrivals"),
        nb::arg("rate_bps"), nb::arg("overhead_bytes"));
  std::vector<std::string> names(egress::kDisciplineNames.begin(), egress::kDisciplineNames.end());
  m.attr("EGRESS_DISCIPLINES") = names;
  m.attr("EGRESS_MIN_RATE_BPS") = egress::Link::kMinRateBps;
  m.attr("EGRESS_MAX_RATE_BPS") = egress::Link::kMaxRateBps;
}

}  // namespace batchplane::native
