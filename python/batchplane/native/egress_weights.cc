// SPDX-License-Identifier: BSD-3-Clause
// egress_weights.cc - weights with which flows of a scheduler wait for no longer than they may.
#include "egress_weights.h"

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

// `numbers`: what a module of kind egress schedules, as `batchplaned --routes` tells it. `needs`: (flow, bits
// a second that it sends, ns that it may wait). {flow: weight} of those; empty when no weights will do.
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
  const std::vector<uint32_t> found = egress::least_weights(
      spec.discipline, flows, wanted, {.rate_bps = spec.rate_bps, .framing = spec.framing});
  nb::dict told;
  for (const auto& need : needs) {
    const uint32_t flow = std::get<0>(need);
    if (!found.empty()) told[nb::cast(flow)] = found[at.at(flow)];
  }
  return told;
}

}  // namespace

void add_egress_weights(nb::module_& m) {
  m.def("egress_weights", &weights, nb::arg("numbers"), nb::arg("needs"));
}

}  // namespace batchplane::native
