// SPDX-License-Identifier: BSD-3-Clause
// session_shape.h - sessions whose rates a packet scheduler enforces: their QERs become nodes of
// its tree.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/module/args.h"
#include "modules/common/flow_tree.h"
#include "modules/session/session.h"

namespace batchplane::session {

static_assert(kSlotBits == kMarkFlowBits);

// The flow of a rule's leaf.
constexpr uint32_t flow_of_slot(uint32_t slot) { return flow_of_mark(1U << kMarkFlowBits | slot); }

using MarkOfSlot = std::function<uint32_t(uint32_t slot)>;

// The nodes of one direction, parents first: a leaf for each PDR with a shaped QER, and above it a
// node for each QER that it shares with other PDRs. Throws ConfigError if the QERs do not nest.
[[nodiscard]] std::vector<TreeGuest> shaped_nodes(const Session& session, bool is_uplink,
                                                  egress::LeafQueue queue,
                                                  const MarkOfSlot& mark_of,
                                                  const std::string& where);

// Owner: a table of sessions, on the control thread.
class SessionShaper {
 public:
  // A session before and after a change; null where it is added or removed.
  struct Change {
    const Session* before = nullptr;
    const Session* after = nullptr;
    std::string where = {};
  };

  // `shape`: {down, up, queue}.
  void configure(const Args& args);

  // Called when all modules exist: throws ConfigError if a scheduler is missing.
  void check() const;
  // Throws ConfigError and then leaves everything unchanged.
  void stage(const std::vector<Change>& changes, const MarkOfSlot& mark_of);
  void settle(bool is_wanted) noexcept;
  // Whether a rule may take this slot: no packet of the slot's last rule waits in the tree.
  [[nodiscard]] bool is_free(uint32_t slot, bool is_uplink) const;
  // The first change contains all sessions: a new pipeline's trees begin empty.
  [[nodiscard]] bool is_filled() const { return is_filled_; }

 private:
  struct Side {
    std::string scheduler;
    std::string where;
    std::shared_ptr<FlowTreePlace> place;
  };
  [[nodiscard]] bool has_tree(bool is_uplink) const {
    const Side& side = sides_[is_uplink ? 1 : 0];
    return side.place != nullptr && side.place->tree != nullptr;
  }
  [[nodiscard]] FlowTree& tree_of(bool is_uplink, const std::string& where) const;

  std::array<Side, 2> sides_;  // [is_uplink]
  egress::LeafQueue queue_ = egress::LeafQueue::kFifo;
  std::vector<FlowTree*> staged_;
  bool is_filled_ = false;
};

[[nodiscard]] ParamSpec shape_spec();

}  // namespace batchplane::session
