// SPDX-License-Identifier: BSD-3-Clause
// egress_book.h - the configuration of an egress scheduler, and the queue of edits to the worker
// that runs it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/spsc_ring.h"
#include "core/module/args.h"
#include "egress/bound/bound.h"
#include "modules/common/flow_tree.h"
#include "modules/egress/egress_scheduler.h"

namespace batchplane {

// A flow, the link or an inner node, for `show` and `status`.
struct EgressNode {
  static constexpr uint32_t kNone = ~0U;

  uint32_t number = 0;                // flows have the lowest numbers
  uint32_t parent = kNone;            // number of the parent; only the link has none
  const std::string* name = nullptr;  // inner nodes only
  uint32_t weight = 1;
  uint8_t priority = 0;
  uint64_t min_rate_bps = 0;
  uint64_t ceil_bps = 0;
};

class EgressBook {
 public:
  virtual ~EgressBook() = default;
  EgressBook(const EgressBook&) = delete;
  EgressBook& operator=(const EgressBook&) = delete;

  // Control thread. Adds all given entries or none; throws ConfigError.
  virtual void add(const Value& args) = 0;
  virtual void replace(const Value& args) = 0;
  virtual void remove(const Value& args) = 0;
  virtual void set_rate_bps(uint64_t rate_bps);
  // Nodes that belong to another module, see FlowTree. `is_idle`: no worker runs the scheduler yet,
  // so it is changed at once.
  virtual void stage(const TreeChange& change, bool is_idle);
  virtual void settle(bool /*is_wanted*/, EgressScheduler* /*idle*/) noexcept {}
  [[nodiscard]] virtual bool is_free(uint32_t flow) const { return !is_there(flow); }
  // Calls `use` with each flow's parameters, in order of flows, until it returns false.
  virtual void each_flow(const std::function<bool(uint32_t flow, Dict said)>& use) const = 0;
  [[nodiscard]] virtual size_t n_flows() const = 0;
  // Indexed by number.
  [[nodiscard]] virtual std::vector<EgressNode> nodes() const = 0;
  // The module's current parameters.
  [[nodiscard]] virtual Dict saved_params() const = 0;
  // Delay bound of each flow, indexed by number and without rounds of the arbiter; empty for unused
  // numbers.
  [[nodiscard]] virtual std::vector<egress::Bound> bounds(const EgressSettings& settings) const = 0;
  // For the simulator: all flows and nodes by number.
  virtual void tell_numbers(Dict& into) const = 0;

  // Any worker. The flow with this number, or flow 0 if there is none or it has another generation.
  [[nodiscard]] uint32_t known(uint32_t number) const noexcept {
    const uint32_t flow = number & ((1U << kMarkFlowBits) - 1);
    const uint32_t tag = tag_of(generation_of_mark(number));
    return flow < tags_.size() && tags_[flow].load(std::memory_order_relaxed) == tag ? flow : 0;
  }
  // For a packet whose flow was known when it was put in: that flow, or flow 0 if it has been
  // deleted.
  [[nodiscard]] uint32_t known_still(uint32_t flow) const noexcept {
    return is_there(flow) ? flow : 0;
  }

  // Any worker. Whether any queue needs the connection hash of packets.
  [[nodiscard]] bool has_connections() const noexcept {
    return has_connections_.load(std::memory_order_relaxed);
  }

  // Applies pending edits. The scheduling worker, between two rounds.
  void carry_out(EgressScheduler& scheduler) noexcept;
  // Configures a new scheduler completely, before the start.
  virtual void configure_all(EgressScheduler& scheduler) const = 0;
  // For an apply: inherit() prepares; can_take_over() says whether the takeover is possible;
  // take_over(), while no worker runs, reconfigures the old book's scheduler to this configuration.
  virtual void inherit(const EgressBook& /*old*/) {}
  [[nodiscard]] virtual bool can_take_over() const { return true; }
  virtual void take_over(EgressScheduler& scheduler, EgressBook& old) noexcept = 0;

 protected:
  // Flows are numbered below max_flows, other nodes from there on.
  EgressBook(uint32_t max_flows, uint32_t n_numbers);

  [[nodiscard]] uint32_t max_flows() const { return static_cast<uint32_t>(tags_.size()); }
  void refuse_too_many(size_t n_edits);
  void order(const EgressEdit& edit) { edits_.enqueue(&edit, 1); }
  void carry_out(const EgressEdit& edit, EgressScheduler& scheduler) noexcept;
  void set_known(uint32_t flow, uint8_t generation = 0) { set_tag(flow, tag_of(generation)); }
  void set_has_connections() { has_connections_.store(true, std::memory_order_relaxed); }
  void leave(uint32_t number) noexcept;
  void leave_like(const EgressBook& old) noexcept;
  // The flow was deleted and none of its packets are queued any more.
  [[nodiscard]] bool has_flow_left(uint32_t flow) const {
    return tags_[flow].load(std::memory_order_relaxed) == kNoTag;
  }
  // Called when a deleted flow or node has left; its number may be reused.
  virtual void has_left(uint32_t /*number*/) noexcept {}

 private:
  // Tag of an existing flow: the generation of its marks, plus 1.
  static constexpr uint16_t kNoTag = 0;
  static constexpr uint16_t kLeavingTag = 0xffff;
  static constexpr uint16_t tag_of(uint32_t generation) {
    return static_cast<uint16_t>(generation + 1);
  }
  void set_tag(uint32_t flow, uint16_t tag) { tags_[flow].store(tag, std::memory_order_relaxed); }
  [[nodiscard]] bool is_there(uint32_t number) const noexcept {
    if (number >= tags_.size()) return false;
    const uint16_t tag = tags_[number].load(std::memory_order_relaxed);
    return tag != kNoTag && tag != kLeavingTag;
  }

  std::vector<std::atomic<uint16_t>> tags_;  // by flow
  std::atomic<bool> has_connections_{false};
  SpscRing<EgressEdit> edits_;
  // Removed nodes whose queues are not yet empty or that still have children. Worker.
  std::vector<uint32_t> leaving_;
  std::vector<bool> is_leaving_;  // by number
};

// Creates the book for the `discipline` parameter.
std::unique_ptr<EgressBook> make_egress_book(const Args& args, const EgressSettings& settings);

}  // namespace batchplane
