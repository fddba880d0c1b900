// SPDX-License-Identifier: BSD-3-Clause
// hold_back.h - backpressure from the ends of a task while they are full, limited to the inputs that lead
// there, so that packets wait where they come from. Inputs that lead elsewhere are still polled: otherwise
// tasks that hand packets to each other in both directions would deadlock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace batchplane::exec {

template <class Module>
struct HoldBack {
  const Module* end = nullptr;
  std::vector<uint8_t> leads_there;  // by rank of the task's nodes
};

// For the end at `rank`. `edges`: pairs of ranks, the lower one first.
template <class Module>
HoldBack<Module> hold_back_of(const Module* end, uint32_t rank, uint32_t n_nodes,
                              std::vector<std::pair<uint32_t, uint32_t>> edges) {
  HoldBack<Module> made{end, std::vector<uint8_t>(n_nodes, 0)};
  made.leads_there[rank] = 1;
  std::ranges::sort(edges, [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [from, to] : edges) made.leads_there[from] |= made.leads_there[to];
  return made;
}

// Whether a batch may enter at the node of rank first_rank. `room_pkts(end)`: packets that the end takes
// before its senders should wait; `space_pkts(end)`: packets that it can take at worst. Packets in buffers
// have been polled already and may all arrive at once, followed by this batch. Buffers at nodes before
// `loose_rank` do not fire meanwhile.
template <class Executor, class Module, class Room, class Space>
bool has_room(Executor& executor, const std::vector<HoldBack<Module>>& ends, uint32_t first_rank,
              uint32_t loose_rank, uint32_t batch_pkts, const Room& room_pkts,
              const Space& space_pkts) {
  bool has_space = true;
  for (const HoldBack<Module>& back : ends) {
    if (back.leads_there[first_rank] == 0) continue;
    if (room_pkts(*back.end) < batch_pkts) return false;
    if (!executor.has_buffers()) continue;
    const uint64_t at_worst_pkts =
        batch_pkts + executor.buffered_pkts(back.leads_there, loose_rank);
    has_space = has_space && space_pkts(*back.end) >= at_worst_pkts;
  }
  // All buffers together may hold more than there is space for: then nothing would ever be polled again.
  if (!has_space) executor.release_oldest(loose_rank);
  return has_space;
}

// Whether there is space for everything in buffers at once. If not, fires one buffer, provided that no end is
// full.
template <class Executor, class Module, class Room, class Space>
bool has_space_for_held(Executor& executor, const std::vector<HoldBack<Module>>& ends,
                        uint32_t batch_pkts, const Room& room_pkts, const Space& space_pkts) {
  for (const HoldBack<Module>& back : ends) {
    if (space_pkts(*back.end) >= executor.buffered_pkts(back.leads_there)) continue;
    const auto is_full = [&](const HoldBack<Module>& end) {
      return room_pkts(*end.end) < batch_pkts;
    };
    if (std::ranges::none_of(ends, is_full)) executor.release_oldest();
    return false;
  }
  return true;
}

// Runs what a move left in front of nodes, as far as there is room. False: nothing ran.
template <class Task, class Context>
bool run_leftovers(Task& task, Context& ctx) {
  return task.leftovers.run(
      ctx.batch_limit_pkts,
      [&](const auto& first) {
        task.executor->settle_changes(first.rank);  // packets held there came before
        return task.has_room(first, first.rank, ctx) && task.executor->has_unit_room(first.rank);
      },
      [&](auto& first, auto* pkts, uint32_t n) { task.enter(first, pkts, n, ctx, false); },
      [&] {
        if (!task.has_space_for_held(ctx)) return false;
        task.executor->settle_changes();  // packets that are polled next may pass by pointer
        return true;
      });
}

// Runs leftovers first, then marks each input as open or held back. False when all are held back.
template <class Task, class Context>
bool open_inputs(Task& task, Context& ctx) {
  if (task.leftovers.is_any()) [[unlikely]]
    run_leftovers(task, ctx);
  if (task.hold_backs.empty() && !task.leftovers.is_any()) [[likely]]
    return true;
  bool any = false;
  for (auto& input : task.inputs) {
    input.is_open = !task.leftovers.is_any() && task.has_room(*input.first, 0, ctx);
    any |= input.is_open;
  }
  return any;
}

}  // namespace batchplane::exec
