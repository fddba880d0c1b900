// SPDX-License-Identifier: BSD-3-Clause
// capture_order.h - the order in which workers are read, so that packets that move between them meanwhile are
// counted once.
#pragma once

#include <memory>
#include <vector>

#include "core/engine/worker.h"
#include "core/graph/graph.h"

namespace batchplane {

// Whether it is a queue that one task fills and another one polls.
bool is_hand_over(const Instance& instance);

// Positions of all workers, each after the workers to which it hands packets. Where workers hand packets
// around in a circle no such order exists, and an arbitrary one is returned.
std::vector<uint32_t> capture_order(const Graph& graph,
                                    const std::vector<std::unique_ptr<Worker>>& workers);

}  // namespace batchplane
