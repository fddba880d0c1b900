// SPDX-License-Identifier: BSD-3-Clause
// flow_tree.h - how modules reach the packet scheduler of their pipeline: they add nodes of their own to
// its tree, or ask whether a flow's queue is full.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/module/environment.h"
#include "core/packet/packet.h"
#include "egress/tree/tree_params.h"

namespace batchplane {

// A mark with a generation in its upper bits belongs to an item whose number is in the lower bits:
// its flow is that number + 1, since flow 0 is the default flow. A mark without a generation is a
// flow number itself.
inline constexpr uint32_t kMarkFlowBits = 24;
constexpr uint32_t generation_of_mark(uint32_t mark) { return mark >> kMarkFlowBits; }
// The flow number, with the generation above it.
constexpr uint32_t flow_number_of_mark(uint32_t mark) {
  return mark + (generation_of_mark(mark) != 0 ? 1 : 0);
}
constexpr uint32_t flow_of_mark(uint32_t mark) {
  return flow_number_of_mark(mark) & ((1U << kMarkFlowBits) - 1);
}

// A leaf, for packets with its mark, or a named inner node.
struct TreeGuest {
  uint32_t mark = 0;   // 0: an inner node
  std::string name;    // of an inner node
  std::string parent;  // another guest; empty: the link
  egress::NodeParams params;
  std::string where;  // where to report errors

  [[nodiscard]] bool is_leaf() const { return mark != 0; }
};
struct TreeChange {
  std::vector<TreeGuest> placed;  // new, changed or unchanged; parents come first
  std::vector<TreeGuest> gone;    // removed; children come first
};

// Control thread, unless said otherwise.
class FlowTree {
 public:
  virtual ~FlowTree() = default;
  FlowTree(const FlowTree&) = delete;
  FlowTree& operator=(const FlowTree&) = delete;

  // Checks a change as a whole; throws ConfigError and then leaves everything unchanged.
  virtual void stage(const TreeChange& change) = 0;
  // Carries out what was staged, or discards it.
  virtual void settle(bool is_wanted) noexcept = 0;
  // No leaf has this flow, and no packet of an earlier leaf still waits.
  [[nodiscard]] virtual bool is_free(uint32_t flow) const = 0;
  // The flow of a packet there.
  [[nodiscard]] virtual uint32_t scheduled_flow(Packet& pkt) const = 0;
  // Any sending worker: the queue of the packet's flow is full, so it would be dropped on arrival. It then
  // counts as refused.
  virtual bool refuses(Packet& pkt) noexcept = 0;

 protected:
  FlowTree() = default;
};

// Where the two modules of a pipeline find each other, by the scheduler's name.
struct FlowTreePlace {
  FlowTree* tree = nullptr;               // while the scheduler exists
  std::weak_ptr<FlowTreePlace> previous;  // in the pipeline that is being replaced

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
