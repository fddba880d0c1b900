// SPDX-License-Identifier: BSD-3-Clause
// tree_plan.h - the configured egress tree: names, parents, rates, and whether the minimum rates
// fit.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "modules/egress/tree_items.h"

namespace batchplane {

inline constexpr uint32_t kMaxTreeLevels = 12;  // from the link to a flow

// Numbers are those of egress::Tree: flows, then the link, then inner nodes.
class TreePlan {
 public:
  struct Node {
    egress::NodeParams params;
    uint32_t parent = 0;
    bool exists = false;
    bool is_guest = false;   // belongs to another module
    uint8_t generation = 0;  // of a guest's marks

    bool operator==(const Node&) const = default;
  };
  static_assert(sizeof(Node) == 40);

  TreePlan(uint32_t max_flows, uint32_t max_inner_nodes);

  [[nodiscard]] uint32_t max_flows() const { return max_flows_; }
  [[nodiscard]] uint32_t link() const { return max_flows_; }
  [[nodiscard]] uint32_t n_numbers() const { return static_cast<uint32_t>(nodes_.size()); }
  [[nodiscard]] bool is_flow(uint32_t number) const { return number < max_flows_; }
  [[nodiscard]] const Node& operator[](uint32_t number) const { return nodes_[number]; }
  [[nodiscard]] const std::string& name_of(uint32_t inner) const { return names_[inner - link()]; }
  // Number of an inner node, or of the link for an empty name; kNoNumber if there is none.
  [[nodiscard]] uint32_t number_of(const std::string& name) const;
  static constexpr uint32_t kNoNumber = ~0U;
  [[nodiscard]] TreeItem item_of(uint32_t number) const;
  [[nodiscard]] bool has_children(uint32_t inner) const { return of(inner).n_children != 0; }
  [[nodiscard]] uint32_t levels_of(uint32_t number) const;
  [[nodiscard]] size_t n_flows() const { return n_flows_; }
  [[nodiscard]] size_t n_shaped_flows() const { return n_shaped_flows_; }

  // Assigns an unused number to an inner node. Throws ConfigError if none is left.
  uint32_t take_number(const std::string& name, const std::string& where);
  void give_back_number(uint32_t inner) { unused_.push_back(inner); }
  void forget_name(uint32_t inner) { numbers_.erase(name_of(inner)); }
  // The parent must exist, and must not lie below the node.
  void set(uint32_t number, const Node& node);

  // Throws ConfigError if the rates guaranteed below this node or one of its ancestors exceed its
  // ceiling. `link_bps` 0: the link has no rate.
  void check_minima(uint32_t number, uint64_t link_bps, const std::string& where) const;
  // Renumbers inner nodes to match those of the same names in `other`; the rest get numbers that
  // are unused there. Returns false if there are too few. Throws nothing but std::bad_alloc.
  bool renumber_like(const TreePlan& other);

 private:
  struct Inner {
    uint32_t n_children = 0;
    uint64_t guaranteed_bps = 0;  // sum over its children
  };
  [[nodiscard]] Inner& of(uint32_t inner) { return inner_[inner - link()]; }
  [[nodiscard]] const Inner& of(uint32_t inner) const { return inner_[inner - link()]; }
  // The rate guaranteed to a node: the larger of its own minimum and the sum of those below it.
  [[nodiscard]] uint64_t guaranteed_bps(uint32_t number) const;
  void attach(uint32_t number, bool is_attached);
  void change_guaranteed(uint32_t inner, uint64_t less_bps, uint64_t more_bps);

  uint32_t max_flows_;
  std::vector<Node> nodes_;
  std::vector<Inner> inner_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<uint32_t> unused_;
  size_t n_flows_ = 0;
  size_t n_shaped_flows_ = 0;
};

}  // namespace batchplane
