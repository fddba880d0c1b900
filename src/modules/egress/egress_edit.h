// SPDX-License-Identifier: BSD-3-Clause
// egress_edit.h - a change to an egress scheduler, sent to the worker that runs it.
#pragma once

#include <cstdint>

#include "egress/discipline/discipline.h"
#include "egress/tree/tree_params.h"

namespace batchplane {

struct EgressEdit {
  // kPlace adds, changes or moves a node of a tree.
  enum class Kind : uint8_t { kConfigure, kPlace, kRemove, kRate } kind = Kind::kConfigure;
  uint32_t number = 0;  // of a flow or node
  uint32_t parent = 0;
  uint8_t generation = 0;  // of the packets' marks
  egress::FlowParams flow;
  egress::NodeParams node;
  uint64_t rate_bps = 0;
};

}  // namespace batchplane
