// SPDX-License-Identifier: BSD-3-Clause
#include "slo/estimate/alike.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "slo/model/set_hash.h"

namespace batchplane::slo {
namespace {
constexpr double kAlike = 0.05;  // relative difference of arrivals: only equal periods keep turns
constexpr double kAlikeCost = 0.2;  // of costs: the first branch after a poll takes a fifth more
constexpr size_t kLooksAt = 16;     // classes

// Depends on the order.
uint64_t mixed(uint64_t kind, uint64_t with) { return mixed_bits(mixed_bits(kind) + with + 1); }

bool are_near(double a, double b, double within = kAlike) {
  return a == b || std::abs(a - b) <= within * std::max(a, b);
}

bool are_near(const ProgramModule& a, const ProgramModule& b) {
  return a.task == b.task && a.max_pkts == b.max_pkts && are_near(a.share, b.share) &&
         are_near(a.arriving_pkts, b.arriving_pkts) && are_near(a.away_ns(1), b.away_ns(1)) &&
         are_near(a.service_ns(a.max_pkts), b.service_ns(b.max_pkts), kAlikeCost) &&
         are_near(a.service_ns(a.arriving_pkts), b.service_ns(b.arriving_pkts), kAlikeCost);
}
}  // namespace

Alike::Alike(const Program& program)
    : module_flows_(program.modules.size()),
      slo_ns_(program.modules.size()),
      sorted_(program.modules.size()),
      flows_(program.flows.size()) {
  std::iota(sorted_.begin(), sorted_.end(), 0U);
  for (uint32_t f = 0; f < program.flows.size(); ++f) {
    const ProgramFlow& flow = program.flows[f];
    for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
      module_flows_[program.flow_modules[i]].push_back(f);
    }
  }
}

// Whether no flow crosses both the module and one of the class.
bool Alike::joins(const Program& program, uint32_t module, uint32_t first) const {
  return std::ranges::none_of(module_flows_[module], [&](uint32_t f) {
    const ProgramFlow& flow = program.flows[f];
    return std::any_of(program.flow_modules.begin() + flow.modules_begin,
                       program.flow_modules.begin() + flow.modules_end,
                       [&](uint32_t v) { return program.modules[v].alike == first; });
  });
}

// Looks at a few classes only: with many modules that all differ, the search must not take longer
// than the solution.
uint32_t Alike::first_of(const Program& program, uint32_t v) const {
  for (size_t i = firsts_.size() - std::min(firsts_.size(), kLooksAt); i < firsts_.size(); ++i) {
    const uint32_t w = firsts_[i];
    if (slo_ns_[v] == slo_ns_[w] && are_near(program.modules[v], program.modules[w]) &&
        joins(program, v, w)) {
      return w;
    }
  }
  return v;
}

void Alike::find_modules(const Snapshot& snapshot, Program& program) {
  std::ranges::fill(slo_ns_, std::numeric_limits<uint64_t>::max());
  for (uint32_t v = 0; v < slo_ns_.size(); ++v) {
    for (const uint32_t f : module_flows_[v]) {
      const uint64_t slo_ns = snapshot.flows[f].slo_ns;
      if (slo_ns > 0) slo_ns_[v] = std::min(slo_ns_[v], slo_ns);
    }
    program.modules[v].alike = kNoModule;
  }
  // Modules that are alike come close together.
  std::ranges::stable_sort(sorted_, {}, [&](uint32_t v) {
    const ProgramModule& module = program.modules[v];
    return std::tuple(module.task, slo_ns_[v], module.share, module.service_ns(module.max_pkts));
  });
  firsts_.clear();
  for (const uint32_t v : sorted_) {
    const uint32_t first = first_of(program, v);
    program.modules[v].alike = first;
    if (first == v) firsts_.push_back(v);
  }
  // A class has the number of its first module in the program's order.
  labels_.assign(program.modules.size(), kNoModule);
  for (uint32_t v = 0; v < program.modules.size(); ++v) {
    uint32_t& label = labels_[program.modules[v].alike];
    if (label == kNoModule) label = v;
    program.modules[v].alike = label;
  }
}

void Alike::find_flows(const Snapshot& snapshot, const Program& program) {
  kinds_.clear();
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const ProgramFlow& flow = program.flows[f];
    flows_[f] = f;
    const uint64_t slo_ns = snapshot.flows[f].slo_ns;
    if (slo_ns == 0) continue;
    uint64_t kind = mixed(slo_ns, flow.modules_end - flow.modules_begin);
    for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
      kind = mixed(kind, program.modules[program.flow_modules[i]].alike);
    }
    for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
      kind = mixed(kind, program.flow_tasks[i]);
    }
    kinds_.emplace_back(kind, f);
  }
  std::ranges::sort(kinds_);
  for (size_t i = 1; i < kinds_.size(); ++i) {
    const auto& [last_kind, last] = kinds_[i - 1];
    if (kinds_[i].first == last_kind) flows_[kinds_[i].second] = flows_[last];
  }
}

void Alike::find(const Snapshot& snapshot, Program& program) {
  find_modules(snapshot, program);
  find_flows(snapshot, program);
}

}  // namespace batchplane::slo
