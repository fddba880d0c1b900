// SPDX-License-Identifier: BSD-3-Clause
// capture_order.h - in which order workers are read, so that what moves between them meanwhile is
// counted once.
#pragma once

#include <memory>
#include <vector>

#include "core/engine/worker.h"
#include "core/graph/graph.h"

namespace batchplane {

// A queue that one task fills and another one polls.
bool is_hand_over(const Instance& instance);

// Positions of all workers, each after those that it hands packets to; where workers hand packets
// to each other in a circle no order does that, and some order is given.
std::vector<uint32_t> capture_order(const Graph& graph,
                                    const std::vector<std::unique_ptr<Worker>>& workers);

}  // namespace batchplane
