// SPDX-License-Identifier: BSD-3-Clause
// flow_tree.h - how a module has nodes of its own in a packet scheduler's tree, which another module has.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/module/environment.h"
#include "egress/tree/tree_params.h"

namespace batchplane {

// A mark with a generation in its upper bits belongs to an item that has this number below: its flow is
// the next number, since flow 0 is everybody's. A mark without one is a flow's number itself.
inline constexpr uint32_t kMarkFlowBits = 24;
constexpr uint32_t generation_of_mark(uint32_t mark) { return mark >> kMarkFlowBits; }
// The flow, and above it the generation.
constexpr uint32_t flow_number_of_mark(uint32_t mark) {
  return mark + (generation_of_mark(mark) != 0 ? 1 : 0);
}
constexpr uint32_t flow_of_mark(uint32_t mark) {
  return flow_number_of_mark(mark) & ((1U << kMarkFlowBits) - 1);
}

// A leaf, which packets with its mark belong to, or an inner node with a name.
struct TreeGuest {
  uint32_t mark = 0;   // 0: an inner node
  std::string name;    // of an inner node
  std::string parent;  // another guest; empty: the link
  egress::NodeParams params;
  std::string where;  // what mistakes name

  [[nodiscard]] bool is_leaf() const { return mark != 0; }
};
struct TreeChange {
  std::vector<TreeGuest> placed;  // new or changed, or as before; parents come first
  std::vector<TreeGuest> gone;    // what lies below others comes first
};

// Control thread.
class FlowTree {
 public:
  virtual ~FlowTree() = default;
  FlowTree(const FlowTree&) = delete;
  FlowTree& operator=(const FlowTree&) = delete;

  // Whether all of a change can be; throws ConfigError, and then nothing has happened.
  virtual void stage(const TreeChange& change) = 0;
  // Does what was staged, or forgets it.
  virtual void settle(bool is_wanted) noexcept = 0;
  // No leaf has this flow, and no packet of an earlier one waits.
  [[nodiscard]] virtual bool is_free(uint32_t flow) const = 0;

 protected:
  FlowTree() = default;
};

// Where both modules of a pipeline find each other, by the scheduler's name.
struct FlowTreePlace {
  FlowTree* tree = nullptr;               // while the scheduler is there
  std::weak_ptr<FlowTreePlace> previous;  // in the pipeline that an apply replaces

  [[nodiscard]] bool is_free(uint32_t flow) const {
    const std::shared_ptr<FlowTreePlace> old = previous.lock();
    const bool is_free_there = old == nullptr || old->tree == nullptr || old->tree->is_free(flow);
    return is_free_there && (tree == nullptr || tree->is_free(flow));
  }
};
inline std::shared_ptr<FlowTreePlace> flow_tree_place(Environment& env,
                                                      const std::string& scheduler) {
  return env.shared<FlowTreePlace>(scheduler, [&] {
    auto place = std::make_shared<FlowTreePlace>();
    place->previous = env.previous<FlowTreePlace>(scheduler);
    return place;
  });
}

}  // namespace batchplane
