// SPDX-License-Identifier: BSD-3-Clause
#include "slo/estimate/alike.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace batchplane::slo {
namespace {
constexpr double kAlike = 0.05;  // relative difference

bool are_near(double a, double b) { return a == b || std::abs(a - b) <= kAlike * std::max(a, b); }

bool are_near(const ProgramModule& a, const ProgramModule& b) {
  return a.task == b.task && a.max_pkts == b.max_pkts && are_near(a.share, b.share) &&
         are_near(a.arriving_pkts, b.arriving_pkts) &&
         are_near(a.service_ns(a.max_pkts), b.service_ns(b.max_pkts)) &&
         are_near(a.service_ns(a.arriving_pkts), b.service_ns(b.arriving_pkts));
}
}  // namespace

Alike::Alike(const Program& program)
    : module_flows_(program.modules.size()),
      slo_ns_(program.modules.size()),
      flows_(program.flows.size()) {
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

bool Alike::are_alike(const Snapshot& snapshot, const Program& program, uint32_t f,
                      uint32_t g) const {
  const ProgramFlow& a = program.flows[f];
  const ProgramFlow& b = program.flows[g];
  const auto modules = [&](const ProgramFlow& flow) {
    return std::span(program.flow_modules)
        .subspan(flow.modules_begin, flow.modules_end - flow.modules_begin);
  };
  const auto tasks = [&](const ProgramFlow& flow) {
    return std::span(program.flow_tasks)
        .subspan(flow.tasks_begin, flow.tasks_end - flow.tasks_begin);
  };
  return snapshot.flows[f].slo_ns == snapshot.flows[g].slo_ns &&
         std::ranges::equal(tasks(a), tasks(b)) &&
         std::ranges::equal(modules(a), modules(b), [&](uint32_t v, uint32_t w) {
           return v == w || program.modules[v].alike == program.modules[w].alike;
         });
}

void Alike::find(const Snapshot& snapshot, Program& program) {
  std::ranges::fill(slo_ns_, std::numeric_limits<uint64_t>::max());
  for (uint32_t v = 0; v < slo_ns_.size(); ++v) {
    for (const uint32_t f : module_flows_[v]) {
      const uint64_t slo_ns = snapshot.flows[f].slo_ns;
      if (slo_ns > 0) slo_ns_[v] = std::min(slo_ns_[v], slo_ns);
    }
  }
  firsts_.clear();
  for (ProgramModule& module : program.modules) module.alike = kNoModule;
  for (uint32_t v = 0; v < program.modules.size(); ++v) {
    ProgramModule& module = program.modules[v];
    const auto first = std::ranges::find_if(firsts_, [&](uint32_t w) {
      return slo_ns_[v] == slo_ns_[w] && are_near(module, program.modules[w]) &&
             joins(program, v, w);
    });
    module.alike = first == firsts_.end() ? v : *first;
    if (first == firsts_.end()) firsts_.push_back(v);
  }
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    flows_[f] = f;
    for (uint32_t g = 0; g < f; ++g) {
      if (flows_[g] != g || !are_alike(snapshot, program, f, g)) continue;
      flows_[f] = g;
      break;
    }
  }
}

}  // namespace batchplane::slo
