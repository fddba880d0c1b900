// SPDX-License-Identifier: BSD-3-Clause
// egress_bounds.cc - what the flows of a scheduler wait at most, and weights with which that is enough.
#include "egress_bounds.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "egress/bound/bound.h"
#include "sim/scheduler_spec.h"
#include "values.h"

namespace batchplane::native {
namespace {

namespace nb = nanobind;

egress::Server server_of(const sim::SchedulerSpec& spec) {
  return {.rate_bps = spec.rate_bps, .framing = spec.framing};
}

// `numbers`: what a module of kind egress schedules, as `batchplaned --routes` tells it. By flow.
nb::dict bounds(nb::dict numbers) {
  const sim::SchedulerSpec spec = sim::parse_scheduler(to_value(numbers), "schedulers");
  const egress::Crowd crowd = egress::crowd_of(spec.flows, spec.capacity.pkts);
  nb::dict told;
  for (const auto& [number, params] : spec.flows) {
    const egress::Bound bound = egress::bound_of(spec.discipline, params, crowd, server_of(spec));
    nb::dict row;
    row["weight"] = params.weight;
    row["share_bps"] = bound.share_bps;
    row["own_ns"] = bound.own_ns;
    row["others_ns"] = bound.others_ns;
    row["bound_ns"] = bound.has_one() ? nb::cast(bound.total_ns()) : nb::none();
    row["why_not"] = egress::message_of(bound.why_not);
    told[nb::cast(number)] = row;
  }
  return told;
}

// `needs`: (flow, bits a second that it sends, ns that it may wait). {flow: weight} of those; empty when no
// weights will do.
nb::dict weights(nb::dict numbers, const std::vector<std::tuple<uint32_t, double, double>>& needs) {
  const sim::SchedulerSpec spec = sim::parse_scheduler(to_value(numbers), "schedulers");
  std::vector<egress::FlowParams> flows;
  std::map<uint32_t, uint32_t> at;
  for (const auto& [number, params] : spec.flows) {
    at[number] = static_cast<uint32_t>(flows.size());
    flows.push_back(params);
  }
  std::vector<egress::Need> wanted;
  for (const auto& [flow, sends_bps, allowed_ns] : needs) {
    wanted.push_back({.flow = at.at(flow), .sends_bps = sends_bps, .allowed_ns = allowed_ns});
  }
  const std::vector<uint32_t> found =
      egress::least_weights(spec.discipline, flows, wanted, server_of(spec));
  nb::dict told;
  for (const auto& need : needs) {
    const uint32_t flow = std::get<0>(need);
    if (!found.empty()) told[nb::cast(flow)] = found[at.at(flow)];
  }
  return told;
}

}  // namespace

void add_egress_bounds(nb::module_& m) {
  m.def("egress_bounds", &bounds, nb::arg("numbers"));
  m.def("egress_weights", &weights, nb::arg("numbers"), nb::arg("needs"));
}

}  // namespace batchplane::native
