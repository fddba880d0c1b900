// SPDX-License-Identifier: BSD-3-Clause
// egress.cc - schedules of arrivals through a packet scheduler and a link, as columns.
#include "egress.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "egress/aqm/line_model.h"
#include "egress/arbiter/flat_out.h"
#include "egress/arbiter/replay.h"
#include "egress/arbiter/steady_load.h"
#include "egress/arbiter/virtual_arbiter.h"
#include "egress/discipline/disciplines.h"
#include "egress/discipline/link.h"
#include "egress/tree/full_tree.h"

namespace batchplane::native {
namespace {

namespace nb = nanobind;
using Numbers = std::vector<uint64_t>;

std::vector<egress::Arrival> arrivals_of(const std::vector<Numbers>& columns) {
  std::vector<egress::Arrival> arrivals(columns.at(0).size());
  for (size_t k = 0; k < arrivals.size(); ++k) {
    arrivals[k] = {.at_ns = columns[0][k],
                   .flow = static_cast<uint32_t>(columns.at(1).at(k)),
                   .len_bytes = static_cast<uint32_t>(columns.at(2).at(k))};
  }
  return arrivals;
}

std::vector<egress::FlowParams> flows_of(const std::vector<Numbers>& columns) {
  std::vector<egress::FlowParams> flows(columns.at(0).size());
  for (size_t f = 0; f < flows.size(); ++f) {
    flows[f] = {.weight = static_cast<uint32_t>(columns[0][f]),
                .lmax_bytes = static_cast<uint32_t>(columns.at(1).at(f)),
                .limit_pkts = static_cast<uint32_t>(columns.at(2).at(f))};
  }
  return flows;
}

// flows: weight, lmax_bytes, limit_pkts by flow. arrivals: ns, flow, bytes. Returns departures
// (release_ns, flow, bytes) and the indices of the arrivals that were refused.
nb::tuple replay(const std::string& discipline, const std::vector<Numbers>& flows,
                 const std::vector<Numbers>& arrivals, uint64_t rate_bps, uint32_t overhead_bytes) {
  const egress::ReplayResult result =
      egress::replay(discipline, flows_of(flows), arrivals_of(arrivals), rate_bps, overhead_bytes);
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

// Sets one of those that are numbers, by name.
void set(egress::VirtualSpec& spec, const std::string& name, uint64_t value) {
  using Spec = egress::VirtualSpec;
  static const std::map<std::string, uint64_t Spec::*> kLong{
      {"round_ns", &Spec::round_ns},       {"mailbox_ns", &Spec::mailbox_ns},
      {"take_pkt_ns", &Spec::take_pkt_ns}, {"release_pkt_ns", &Spec::release_pkt_ns},
      {"rate_bps", &Spec::rate_bps},       {"read_interval_ns", &Spec::read_interval_ns},
      {"bus_pkt_ns", &Spec::bus_pkt_ns}};
  static const std::map<std::string, uint32_t Spec::*> kShort{
      {"mailbox_pkts", &Spec::mailbox_pkts},
      {"take_pkts", &Spec::take_pkts},
      {"release_pkts", &Spec::release_pkts},
      {"bus_queues", &Spec::bus_queues},
      {"bus_ring_pkts", &Spec::bus_ring_pkts}};
  static const std::map<std::string, bool Spec::*> kFlags{
      {"has_backpressure", &Spec::has_backpressure}, {"is_immediate", &Spec::is_immediate}};
  if (const auto number = kLong.find(name); number != kLong.end()) {
    spec.*number->second = value;
  } else if (const auto small = kShort.find(name); small != kShort.end()) {
    spec.*small->second = static_cast<uint32_t>(value);
  } else if (const auto flag = kFlags.find(name); flag != kFlags.end()) {
    spec.*flag->second = value != 0;
  } else {
    throw std::invalid_argument("no setting '" + name + "'");
  }
}

// Returns by arrival: whether it was sent, release_ns, done_ns.
nb::tuple virtual_arbiter(const std::string& discipline, const std::vector<Numbers>& flows,
                          const std::vector<uint32_t>& clients,
                          const std::vector<Numbers>& arrivals,
                          const std::map<std::string, uint64_t>& settings) {
  egress::VirtualSpec spec{
      .discipline = discipline, .flows = flows_of(flows), .client_of_flow = clients};
  for (const auto& [name, value] : settings) set(spec, name, value);
  const egress::VirtualResult result = egress::run_virtual(spec, arrivals_of(arrivals));
  std::vector<bool> is_sent;
  for (const egress::Fate fate : result.fates) is_sent.push_back(fate == egress::Fate::kSent);
  return nb::make_tuple(is_sent, result.release_ns, result.done_ns);
}

// Million packets a second.
double flat_out(const std::string& way, const std::string& discipline, uint32_t flows,
                uint32_t clients, uint32_t at_once, uint32_t dispatchers, uint32_t dispatch_pkts,
                bool copies, uint64_t run_ns, int arbiter_cpu, const std::vector<int>& other_cpus) {
  using Way = egress::FlatOutSpec::Way;
  const std::map<std::string, Way> ways{
      {"arbiter", Way::kArbiter}, {"lock", Way::kLock}, {"alone", Way::kAlone}};
  const egress::FlatOutSpec spec{.way = ways.at(way),
                                 .discipline = discipline,
                                 .flows = flows,
                                 .clients = clients,
                                 .at_once = at_once,
                                 .dispatchers = dispatchers,
                                 .dispatch_pkts = dispatch_pkts,
                                 .copies = copies,
                                 .run_ns = run_ns,
                                 .arbiter_cpu = arbiter_cpu,
                                 .other_cpus = other_cpus};
  const nb::gil_scoped_release released;
  return egress::run_flat_out(spec).mpps();
}

// Returns what a ping waits in ms (p50, p95), and how full the line is.
nb::tuple line_model(const std::string& queue, bool marks, uint32_t seconds) {
  using Kind = egress::LineModel::Kind;
  const std::map<std::string, Kind> kinds{
      {"fifo", Kind::kTailDrop}, {"codel", Kind::kCodel}, {"fq_codel", Kind::kFqCodel}};
  const uint64_t until_ns = seconds * 1'000'000'000ULL;
  egress::LineModel line(kinds.at(queue), marks);
  line.run(until_ns);
  return nb::make_tuple(line.ping_ms(0.5), line.ping_ms(0.95), line.goodput(until_ns));
}

// Returns what each class of each subscriber has sent at each of these times.
std::vector<std::vector<uint64_t>> full_tree(uint32_t subscribers, uint64_t link_bps,
                                             uint64_t ceil_bps, bool is_mixed,
                                             const std::vector<uint64_t>& times_ns) {
  const nb::gil_scoped_release released;
  egress::FullTree tree({subscribers, link_bps, ceil_bps, is_mixed});
  std::vector<std::vector<uint64_t>> sent;
  for (const uint64_t until_ns : times_ns) {
    tree.run(until_ns);
    sent.push_back(tree.sent_bytes());
  }
  return sent;
}

}  // namespace

void add_egress(nb::module_& m) {
  m.def("egress_replay", &replay, nb::arg("discipline"), nb::arg("flows"), nb::arg("arrivals"),
        nb::arg("rate_bps"), nb::arg("overhead_bytes"));
  m.def("egress_costs_ns", &costs_ns, nb::arg("discipline"), nb::arg("flows"),
        nb::arg("is_saturated"), nb::arg("is_mixed"), nb::arg("trials"));
  m.def("egress_virtual", &virtual_arbiter, nb::arg("discipline"), nb::arg("flows"),
        nb::arg("clients"), nb::arg("arrivals"), nb::arg("settings"));
  m.def("egress_flat_out", &flat_out, nb::arg("way"), nb::arg("discipline"), nb::arg("flows"),
        nb::arg("clients"), nb::arg("at_once"), nb::arg("dispatchers"), nb::arg("dispatch_pkts"),
        nb::arg("copies"), nb::arg("run_ns"), nb::arg("arbiter_cpu"), nb::arg("other_cpus"));
  m.def("egress_line_model", &line_model, nb::arg("queue"), nb::arg("marks"), nb::arg("seconds"));
  m.def("egress_full_tree", &full_tree, nb::arg("subscribers"), nb::arg("link_bps"),
        nb::arg("ceil_bps"), nb::arg("is_mixed"), nb::arg("times_ns"));
  std::vector<std::string> names(egress::kDisciplineNames.begin(), egress::kDisciplineNames.end());
  m.attr("EGRESS_DISCIPLINES") = names;
  m.attr("EGRESS_MAX_WEIGHT") = egress::kMaxWeight;
  m.attr("EGRESS_MAX_PKT_BYTES") = egress::kMaxPktBytes;
  m.attr("EGRESS_MIN_RATE_BPS") = egress::Link::kMinRateBps;
  m.attr("EGRESS_MAX_RATE_BPS") = egress::Link::kMaxRateBps;
}

}  // namespace batchplane::native
