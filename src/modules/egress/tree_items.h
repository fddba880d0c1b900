// SPDX-License-Identifier: BSD-3-Clause
// tree_items.h - parses the nodes of an egress tree in a pipeline, a live command or a file.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "base/value.h"
#include "egress/tree/tree_params.h"
#include "modules/egress/flow_number.h"

namespace batchplane {

// Indexed by LeafQueue.
inline constexpr std::array<const char*, 4> kQueueNames{"fifo", "codel", "fq_codel", "pie"};

// A leaf is a flow and has a flow number; an inner node has a name.
struct TreeItem {
  bool is_flow = false;
  uint32_t flow = 0;
  std::string name;
  std::string parent;     // name of an inner node; empty: the link
  uint32_t limit_us = 0;  // flows only: determines limit_bytes; 0: unset
  egress::NodeParams params;
};

struct TreeDefaults {
  FlowNumbers numbers;
  egress::NodeParams params;
};

// Parses one entry {flow or node, parent, min_rate_bps, ceil_bps, burst_bytes, weight, priority,
// limit_bytes, limit_us, queue}. Throws ConfigError.
TreeItem parse_tree_item(const Value& item, const TreeDefaults& otherwise,
                         const std::string& where);
// The parameters that differ from the defaults.
Dict tree_item_value(const TreeItem& item, const TreeDefaults& otherwise);

// Reads a CSV file whose first line names its columns, in any order: node, flow, parent,
// min_rate_bps, ceil_bps, burst_bytes, weight, priority, limit_bytes, limit_us, queue. A row with a
// flow is a leaf. An empty cell means the default; lines that begin with # are skipped. Calls
// use(item, "FILE:LINE"). Throws ConfigError.
void each_tree_row(const std::string& path, const TreeDefaults& otherwise, const std::string& where,
                   const std::function<void(TreeItem item, const std::string& where)>& use);

}  // namespace batchplane
