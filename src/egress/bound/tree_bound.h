// SPDX-License-Identifier: BSD-3-Clause
// tree_bound.h - the longest wait of a leaf's packets in a tree (egress/tree/tree.h), whatever
// other leaves send, provided that the leaf keeps within its minimum rate.
//
// All bytes are wire bytes; L is the longest packet, R the link's rate. Let a packet be sent at h
// at the latest in a system of rate m of its own, the leaf's minimum. Then
//
// - It is green by h + step: the tree waits that long before it calls a minimum due (min_step_ns()).
//   From then on, its parents are green, too, and are skipped only while they are at their
//   ceilings.
// - A ceiling c above it may have L of debt, for L / c; all of them pay at once. While the link is
//   skipped, it begins another packet: L / R. Later packets below a ceiling cost their bytes / c
//   and what goes out in between does not count, since the ceiling's burst keeps the time; only the
//   last such packet may come on top. So each level is like a link of rate r: the least of R and
//   the ceilings above.
// - Green siblings of the same priority take turns, packet by packet: each sends L at most for a
//   packet that the path sends (`turns`). Those of a higher priority go first, but send no more
//   in a time t than m (t + C) + L for each minimum m among them (`credit`). C is how long a
//   minimum may have been waiting: it comes with idle_credit_ns(), and then waits while others are
//   green. That is told as for the leaf itself, with the credit of all, and it is catch_up_ns at
//   most, since what is older is forgotten. A node's own minimum and those below it count once.
// - Lower priorities and what is not green go later.
//
// So the wait T is at most fixed + turns + credit, and credit grows with T by less than the time.
// For the leaf's own packets to keep up with its minimum, each must have its turn by the time its
// bytes come at rate m; where the shortest packets do not, the leaf may still send one for each T.
//
// A leaf without a minimum that goes before all its siblings on the way to a parent with one has
// that parent's: it waits for the parent's last packet to be paid, too. One that goes before all
// siblings on the way to the link has what all minima leave.
#pragma once

#include <vector>

#include "egress/bound/bound.h"
#include "egress/tree/tree_params.h"

namespace batchplane::egress {

// By leaf. `nodes`: parents before their children; `server.framing` is not used,
// the capacity's is. Numbers that are no leaf have no bound.
[[nodiscard]] std::vector<Bound> tree_bounds(const TreeCapacity& capacity,
                                             const std::vector<PlacedNode>& nodes,
                                             const Server& server);

}  // namespace batchplane::egress
