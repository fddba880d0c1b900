// SPDX-License-Identifier: BSD-3-Clause
// tree_book.h - the nodes of an egress tree, as declared and edited.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "modules/egress/egress_book.h"
#include "modules/egress/tree_plan.h"

namespace batchplane {

class TreeBook final : public EgressBook {
 public:
  TreeBook(const Args& args, const EgressSettings& settings);

  void add(const Value& args) override { edit(args, false); }
  void replace(const Value& args) override { edit(args, true); }
  void remove(const Value& args) override;
  void set_rate_bps(uint64_t rate_bps) override;
  void stage(const TreeChange& change, bool is_idle) override;
  void settle(bool is_wanted, EgressScheduler* idle) noexcept override;
  [[nodiscard]] bool is_free(uint32_t flow) const override;
  void each_flow(const std::function<bool(uint32_t flow, Dict said)>& use) const override;
  [[nodiscard]] size_t n_flows() const override { return plan_.n_flows(); }
  [[nodiscard]] std::vector<EgressNode> nodes() const override;
  [[nodiscard]] Dict saved_params() const override;
  [[nodiscard]] std::vector<egress::Bound> bounds(const EgressSettings& settings) const override;
  void tell_numbers(Dict& into) const override;

  void inherit(const EgressBook& old) override;
  [[nodiscard]] bool can_take_over() const override { return can_take_over_; }
  void configure_all(EgressScheduler& scheduler) const override;
  void take_over(EgressScheduler& scheduler, EgressBook& old) noexcept override;

 private:
  struct Staged {
    TreeItem item;
    std::string where;
    uint32_t number = 0;
    uint32_t parent = 0;
    uint32_t levels = 0;
  };
  using Before = std::pair<uint32_t, TreePlan::Node>;
  // A pending change of nodes that belong to another module.
  struct StagedGuests {
    std::vector<uint32_t> numbers;  // in the order to set them
    std::vector<Before> before;
    std::vector<uint32_t> taken;  // numbers of new inner nodes
  };

  void load(const Args& args);
  void declare_inner(std::vector<Staged> staged);
  void declare_flow(TreeItem item, const std::string& where);

  void edit(const Value& args, bool must_exist);
  [[nodiscard]] std::vector<Staged> parse(const Value& args) const;
  void stage(std::vector<Staged>& staged, bool must_exist, std::vector<uint32_t>& taken);
  void find_numbers(std::vector<Staged>& staged, bool must_exist, std::vector<uint32_t>& taken);
  void find_parents(std::vector<Staged>& staged) const;
  void check_shaped(const std::string& where) const;
  [[nodiscard]] uint32_t number_of(const TreeGuest& guest) const;
  void refuse_guest(uint32_t number, const std::string& where) const;
  void stage_guest(uint32_t number, const TreePlan::Node& node);
  void place_guest(const TreeGuest& guest);
  void remove_guest(const TreeGuest& guest);
  void undo(std::vector<Before>& before, const std::vector<uint32_t>& taken);
  void note_queue(const egress::NodeParams& params);
  void take_back_numbers(SpscRing<uint32_t>& free_numbers);
  void has_left(uint32_t number) noexcept override;
  // All nodes but the link, parents before their children.
  [[nodiscard]] std::vector<uint32_t> in_order() const;
  [[nodiscard]] EgressEdit place_edit(uint32_t number) const;
  [[nodiscard]] List list(bool flows) const;

  const std::string file_;
  const List declared_nodes_;
  const List declared_flows_;
  const bool may_overbook_;
  const uint32_t shaped_flows_limit_;
  const TreeDefaults otherwise_;
  uint64_t link_bps_;
  TreePlan plan_;
  StagedGuests guests_;
  bool is_edited_ = false;
  bool can_take_over_ = false;
  SpscRing<uint32_t> free_numbers_;  // of inner nodes that have left
};

}  // namespace batchplane
