// SPDX-License-Identifier: BSD-3-Clause
// tree_guests.cc - nodes of an egress tree that belong to another module. Part of TreeBook.
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "modules/common/flow_tree.h"
#include "modules/egress/tree_book.h"

namespace batchplane {
namespace {

std::string name_of(const TreeGuest& guest) {
  return guest.is_leaf() ? "flow " + std::to_string(flow_of_mark(guest.mark))
                         : "node '" + guest.name + "'";
}

}  // namespace

uint32_t TreeBook::number_of(const TreeGuest& guest) const {
  if (!guest.is_leaf()) return plan_.number_of(guest.name);
  const uint32_t flow = flow_of_mark(guest.mark);
  return flow < plan_.max_flows() ? flow : TreePlan::kNoNumber;
}

void TreeBook::refuse_guest(uint32_t number, const std::string& where) const {
  if (!plan_[number].is_guest) return;
  const std::string name = plan_.is_flow(number) ? "flow " + std::to_string(number)
                                                 : "node '" + plan_.name_of(number) + "'";
  throw ConfigError(name + " is another module's", where, "change it there");
}

void TreeBook::stage_guest(uint32_t number, const TreePlan::Node& node) {
  if (plan_[number] == node) return;
  guests_.before.emplace_back(number, plan_[number]);
  plan_.set(number, node);
  guests_.numbers.push_back(number);
}

void TreeBook::place_guest(const TreeGuest& guest) {
  uint32_t number = number_of(guest);
  if (number == TreePlan::kNoNumber && guest.is_leaf()) {
    throw ConfigError("the tree has room for flows below " + std::to_string(plan_.max_flows()) +
                          ", and one would be " + name_of(guest),
                      guest.where, "raise max_flows of the scheduler");
  }
  if (number == TreePlan::kNoNumber) {
    number = plan_.take_number(guest.name, guest.where);
    guests_.taken.push_back(number);
  }
  if (plan_[number].exists && !plan_[number].is_guest) {
    throw ConfigError("the scheduler has a " + name_of(guest) + " of its own", guest.where,
                      "delete it there");
  }
  TreePlan::Node node{.params = guest.params,
                      .parent = plan_.number_of(guest.parent),
                      .exists = true,
                      .is_guest = true,
                      .generation = static_cast<uint8_t>(generation_of_mark(guest.mark))};
  if (node.params.limit_bytes == 0) node.params.limit_bytes = otherwise_.params.limit_bytes;
  const egress::Edited range = egress::check_range(node.params);
  if (range != egress::Edited::kYes) throw ConfigError(message_of(range), guest.where);
  stage_guest(number, node);
}

void TreeBook::remove_guest(const TreeGuest& guest) {
  const uint32_t number = number_of(guest);
  if (number == TreePlan::kNoNumber || !plan_[number].is_guest) return;
  if (plan_[number].generation == generation_of_mark(guest.mark)) stage_guest(number, {});
}

void TreeBook::stage(const TreeChange& change, bool is_idle) {
  take_back_numbers(free_numbers_);
  try {
    for (const TreeGuest& guest : change.placed) place_guest(guest);
    for (const TreeGuest& guest : change.gone) remove_guest(guest);
    if (!change.placed.empty()) check_shaped(change.placed.front().where);
    for (const TreeGuest& guest : change.placed) {
      if (!may_overbook_) plan_.check_minima(number_of(guest), link_bps_, guest.where);
    }
    if (!is_idle) refuse_too_many(guests_.numbers.size());
  } catch (const ConfigError&) {
    settle(false, nullptr);
    throw;
  }
}

void TreeBook::settle(bool is_wanted, EgressScheduler* idle) noexcept {
  const StagedGuests staged = std::exchange(guests_, {});
  if (!is_wanted) {
    std::vector<Before> before = staged.before;
    undo(before, staged.taken);
    return;
  }
  for (const uint32_t number : staged.numbers) {
    const bool is_gone = !plan_[number].exists;
    if (is_gone && !plan_.is_flow(number)) plan_.forget_name(number);
    EgressEdit edit = place_edit(number);
    if (is_gone) edit.kind = EgressEdit::Kind::kRemove;
    if (!is_gone) note_queue(plan_[number].params);
    if (idle != nullptr) {
      carry_out(edit, *idle);
    } else {
      order(edit);
    }
  }
}

bool TreeBook::is_free(uint32_t flow) const {
  return flow >= plan_.max_flows() || (!plan_[flow].exists && has_flow_left(flow));
}

}  // namespace batchplane
