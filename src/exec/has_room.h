// SPDX-License-Identifier: BSD-3-Clause
// has_room.h - whether a task may poll, where what it fills holds it back.
#pragma once

#include <algorithm>
#include <cstdint>

namespace batchplane::exec {

// `room_pkts(end)`: how many packets each of `ends` takes before its senders are to wait; `space_pkts(end)`:
// how many it could take at worst. What buffers hold has been polled already: all of it may come at once,
// and then this batch.
template <class Executor, class Ends, class Room, class Space>
bool has_room(Executor& executor, const Ends& ends, uint32_t batch_pkts, const Room& room_pkts,
              const Space& space_pkts) {
  if (ends.empty()) return true;
  const bool may_send =
      std::ranges::all_of(ends, [&](const auto* end) { return room_pkts(*end) >= batch_pkts; });
  if (!may_send || !executor.has_buffers()) return may_send;
  const uint64_t at_worst_pkts = batch_pkts + executor.buffered_pkts();
  const bool has_space =
      std::ranges::all_of(ends, [&](const auto* end) { return space_pkts(*end) >= at_worst_pkts; });
  // Together buffers may hold more than that: then nothing would ever be polled again.
  if (!has_space) executor.release_oldest();
  return has_space;
}

}  // namespace batchplane::exec
