// SPDX-License-Identifier: BSD-3-Clause
#include "slo/model.h"

#include <algorithm>
#include <set>

namespace batchplane::slo {
namespace {

std::vector<std::vector<uint32_t>> successors_of(const exec::ControlModel& model) {
  std::vector<std::vector<uint32_t>> next(model.modules.size());
  for (const exec::ControlEdge& edge : model.edges) {
    std::vector<uint32_t>& of = next[edge.from];
    if (std::ranges::find(of, edge.to) == of.end()) of.push_back(edge.to);
  }
  return next;
}

}  // namespace

void mark_controlled(exec::ControlModel& model) {
  const std::vector<std::vector<uint32_t>> next = successors_of(model);
  std::vector<uint32_t> n_into(model.modules.size(), 0);
  for (const std::vector<uint32_t>& targets : next) {
    for (const uint32_t to : targets) ++n_into[to];
  }
  for (uint32_t m = 0; m < model.modules.size(); ++m) {
    exec::ControlModule& module = model.modules[m];
    module.is_controlled = false;
    if (!module.has_buffer || module.is_egress) continue;
    module.is_controlled = n_into[m] > 1;
    for (uint32_t from = 0; from < model.modules.size() && !module.is_controlled; ++from) {
      const bool leads_here = std::ranges::find(next[from], m) != next[from].end();
      module.is_controlled = leads_here && model.modules[from].has_buffer && next[from].size() > 1;
    }
  }
}

std::vector<Segment> segments_of(const exec::ControlModel& model) {
  const std::vector<std::vector<uint32_t>> next = successors_of(model);
  std::vector<Segment> segments;
  for (uint32_t head = 0; head < model.modules.size(); ++head) {
    if (!model.modules[head].is_controlled) continue;
    Segment segment{head, {head}};
    std::set<uint32_t> seen = {head};
    for (size_t i = 0; i < segment.members.size(); ++i) {
      for (const uint32_t to : next[segment.members[i]]) {
        const bool is_inside =
            model.modules[to].task == model.modules[head].task && !model.modules[to].is_controlled;
        if (is_inside && seen.insert(to).second) segment.members.push_back(to);
      }
    }
    segments.push_back(std::move(segment));
  }
  return segments;
}

}  // namespace batchplane::slo
