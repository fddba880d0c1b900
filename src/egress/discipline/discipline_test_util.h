// SPDX-License-Identifier: BSD-3-Clause
// discipline_test_util.h - clients and meters shared by tests of packet schedulers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "egress/discipline/disciplines.h"

namespace batchplane::egress {

struct TestFlow {
  uint32_t weight = 1;
  uint32_t lmax_bytes = 1500;
};

template <class D>
D make_discipline(const std::vector<TestFlow>& flows, uint32_t pkts) {
  D made({static_cast<uint32_t>(flows.size()), pkts});
  for (uint32_t f = 0; f < flows.size(); ++f) {
    made.configure(f, {.weight = flows[f].weight, .lmax_bytes = flows[f].lmax_bytes});
  }
  return made;
}

inline std::vector<TestFlow> heavy_and_light(uint32_t heavy, uint32_t n_light) {
  std::vector<TestFlow> flows{{.weight = heavy}};
  flows.resize(n_light + 1);
  return flows;
}
inline std::vector<TestFlow> uneven(uint32_t n) {
  std::vector<TestFlow> flows(n);
  for (uint32_t f = 0; f < n; ++f) flows[f].weight = 1 + f * 37 % 64;
  return flows;
}

// Measures a flow's B-WFI: how many bytes it was behind its share at its own departures, over any
// interval in which it was backlogged. Also the largest difference at any time, in both directions.
class ShareMeter {
 public:
  explicit ShareMeter(const std::vector<TestFlow>& flows) : flows_(flows), of_(flows.size()) {
    for (const TestFlow& flow : flows) sum_ += flow.weight;
  }
  void backlog_begins(uint32_t flow) { of_[flow].least = lag(flow); }
  void departs(uint32_t flow, uint32_t len_bytes) {
    Flow& of = of_[flow];
    worst_at_any_time_ = std::max(worst_at_any_time_, lag(flow) + share(flow) * len_bytes);
    served_bytes_ += len_bytes;
    of.bytes += len_bytes;
    const double now = lag(flow);
    worst_at_any_time_ = std::max(worst_at_any_time_, -now);
    of.wfi_bytes = std::max(of.wfi_bytes, now - of.least);
    of.least = std::min(of.least, now);
  }
  [[nodiscard]] double wfi_bytes(uint32_t flow) const { return of_[flow].wfi_bytes; }
  [[nodiscard]] double worst_at_any_time_bytes() const { return worst_at_any_time_; }
  [[nodiscard]] double share(uint32_t flow) const {
    return static_cast<double>(flows_[flow].weight) / static_cast<double>(sum_);
  }

 private:
  struct Flow {
    uint64_t bytes = 0;
    double least = 0;
    double wfi_bytes = 0;
  };
  [[nodiscard]] double lag(uint32_t flow) const {
    return share(flow) * static_cast<double>(served_bytes_) - static_cast<double>(of_[flow].bytes);
  }

  std::vector<TestFlow> flows_;
  std::vector<Flow> of_;
  uint64_t sum_ = 0;
  uint64_t served_bytes_ = 0;
  double worst_at_any_time_ = 0;
};

// Keeps every flow backlogged; returns the largest difference from a flow's share at any time, in
// bytes.
template <class D>
double worst_while_all_backlogged(const std::vector<TestFlow>& flows, uint64_t n_pkts,
                                  uint64_t seed) {
  const auto n = static_cast<uint32_t>(flows.size());
  D discipline = make_discipline<D>(flows, n * 3);
  Rng rng(seed);
  ShareMeter meter(flows);
  const auto put = [&](uint32_t flow) {
    const uint32_t len = 64 + static_cast<uint32_t>(rng.below(flows[flow].lmax_bytes - 63));
    discipline.enqueue(Descriptor::of(1, len, flow, 0));
  };
  for (uint32_t f = 0; f < 2 * n; ++f) put(f % n);
  for (uint64_t k = 0; k < n_pkts; ++k) {
    Descriptor pkt;
    if (!discipline.dequeue(pkt)) return std::numeric_limits<double>::infinity();
    meter.departs(pkt.flow, pkt.len_bytes());
    put(pkt.flow);
  }
  return meter.worst_at_any_time_bytes();
}

}  // namespace batchplane::egress
