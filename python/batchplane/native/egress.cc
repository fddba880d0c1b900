// SPDX-License-Identifier: BSD-3-Clause
// egress.cc - schedules of arrivals through a packet scheduler and a link, as columns.
#include "egress.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "egress/arbiter/link.h"
#include "egress/arbiter/replay.h"
#include "egress/arbiter/steady_load.h"
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

// ns per packet put in and taken out: `trials` times the same number of packets.
std::vector<double> costs_ns(const std::string& discipline, uint32_t flows, bool is_saturated,
                             bool is_mixed, uint32_t trials) {
  constexpr uint32_t kBatches = 1000;
  std::vector<double> all;
  egress::with_discipline(discipline, [&]<egress::Discipline D>() {
    egress::SteadyLoad<D> load(
        {.flows = flows, .is_saturated = is_saturated, .is_mixed = is_mixed});
    load.run(kBatches);
    for (uint32_t t = 0; t < trials; ++t) {
      const auto from = std::chrono::steady_clock::now();
      const uint64_t n = load.run(kBatches);
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - from;
      all.push_back(took.count() / static_cast<double>(n));
    }
  });
  return all;
}

}  // namespace

void add_egress(nb::module_& m) {
  m.def("egress_replay", &replay, nb::arg("discipline"), nb::arg("flows"), nb::arg("arrivals"),
        nb::arg("rate_bps"), nb::arg("overhead_bytes"));
  m.def("egress_costs_ns", &costs_ns, nb::arg("discipline"), nb::arg("flows"),
        nb::arg("is_saturated"), nb::arg("is_mixed"), nb::arg("trials"));
  std::vector<std::string> names(egress::kDisciplineNames.begin(), egress::kDisciplineNames.end());
  m.attr("EGRESS_DISCIPLINES") = names;
  m.attr("EGRESS_MAX_WEIGHT") = egress::kMaxWeight;
  m.attr("EGRESS_MAX_PKT_BYTES") = egress::kMaxPktBytes;
  m.attr("EGRESS_MIN_RATE_BPS") = egress::Link::kMinRateBps;
  m.attr("EGRESS_MAX_RATE_BPS") = egress::Link::kMaxRateBps;
}

}  // namespace batchplane::native
