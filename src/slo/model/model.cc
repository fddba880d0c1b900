// SPDX-License-Identifier: BSD-3-Clause
#include "slo/model/model.h"

#include <algorithm>
#include <set>

#include "exec/controlled.h"

namespace batchplane::slo {
namespace {

// A task that polls several inputs may receive parts of batches from each.
void mark_first(exec::ControlModel& model) {
  const auto is_queue = [&](uint32_t m) {
    return std::ranges::any_of(model.inputs, [m](const exec::ControlInput& input) {
      return input.is_queue && input.module == m;
    });
  };
  if (std::ranges::none_of(model.inputs, &exec::ControlInput::is_queue)) return;
  const auto is_scheduler = [&](uint32_t m) {
    return std::ranges::any_of(model.inputs, [m](const exec::ControlInput& input) {
      return input.is_scheduler && input.module == m;
    });
  };
  for (const exec::ControlEdge& edge : model.edges) {
    const bool is_from_input = !model.modules[edge.from].has_buffer || is_queue(edge.from);
    // Packets behind a link's scheduler must not wait in a buffer again.
    if (is_scheduler(edge.from)) continue;
    exec::ControlModule& first = model.modules[edge.to];
    if (!is_from_input || !first.has_buffer || first.is_egress || is_queue(edge.to)) continue;
    first.is_controlled = true;
  }
}

}  // namespace

void mark_controlled(exec::ControlModel& model) {
  std::vector<exec::ControlledInput> inputs;
  for (const exec::ControlModule& module : model.modules) {
    inputs.push_back({module.has_buffer, module.is_egress});
  }
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (const exec::ControlEdge& edge : model.edges) edges.emplace_back(edge.from, edge.to);
  const std::vector<bool> controlled = exec::controlled_modules(inputs, edges);
  for (uint32_t m = 0; m < model.modules.size(); ++m) {
    exec::ControlModule& module = model.modules[m];
    module.is_controlled = controlled[m] || module.is_unit;
  }
  // A stage collects batches of its own.
  for (const exec::ControlInput& input : model.inputs) {
    exec::ControlModule& module = model.modules[input.module];
    if (input.is_stage) module.is_controlled = module.is_unit;
  }
  mark_first(model);
}

std::vector<std::vector<uint32_t>> successors_of(const exec::ControlModel& model) {
  std::vector<std::vector<uint32_t>> next(model.modules.size());
  for (const exec::ControlEdge& edge : model.edges) {
    std::vector<uint32_t>& of = next[edge.from];
    if (std::ranges::find(of, edge.to) == of.end()) of.push_back(edge.to);
  }
  return next;
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

std::vector<uint32_t> segment_of_heads(const exec::ControlModel& model,
                                       const std::vector<Segment>& segments) {
  std::vector<uint32_t> of_head(model.modules.size(), kNoSegment);
  for (uint32_t s = 0; s < segments.size(); ++s) of_head[segments[s].head] = s;
  return of_head;
}

std::vector<std::vector<uint32_t>> next_segments(const exec::ControlModel& model,
                                                 const std::vector<Segment>& segments) {
  const std::vector<uint32_t> of_head = segment_of_heads(model, segments);
  std::vector<std::vector<uint32_t>> next;
  for (uint32_t s = 0; s < segments.size(); ++s) {
    const Segment& segment = segments[s];
    std::vector<uint32_t>& found = next.emplace_back();
    for (const exec::ControlEdge& edge : model.edges) {
      const uint32_t to = of_head[edge.to];
      if (to == kNoSegment || to == s ||
          model.modules[edge.to].task != model.modules[segment.head].task)
        continue;
      if (std::ranges::find(segment.members, edge.from) == segment.members.end()) continue;
      if (std::ranges::find(found, to) == found.end()) found.push_back(to);
    }
  }
  return next;
}

}  // namespace batchplane::slo
