// SPDX-License-Identifier: BSD-3-Clause
#include "modules/egress/egress_book.h"

#include <algorithm>
#include <utility>

#include "modules/egress/flow_book.h"
#include "modules/egress/tree_book.h"

namespace batchplane {
namespace {

constexpr uint32_t kMaxEditsAtOnce = 1U << 15;

}  // namespace

// The ring has room for an edit of everything at once, up to kMaxEditsAtOnce.
EgressBook::EgressBook(uint32_t max_flows, uint32_t n_numbers)
    : tags_(max_flows),
      edits_(std::min(n_numbers, kMaxEditsAtOnce) + 1024),
      is_leaving_(n_numbers, false) {
  leaving_.reserve(n_numbers);
}

void EgressBook::refuse_too_many(size_t n_edits) {
  if (n_edits <= edits_.free_slots()) return;
  throw ConfigError(
      "too many changes at once", "flows",
      "give fewer, or wait until the scheduler's worker has carried out earlier ones");
}

void EgressBook::set_rate_bps(uint64_t rate_bps) {
  refuse_too_many(1);
  order({.kind = EgressEdit::Kind::kRate, .rate_bps = rate_bps});
}

void EgressBook::stage(const TreeChange& change, bool /*is_idle*/) {
  if (change.placed.empty()) return;
  throw ConfigError("only a tree has room for nodes of other modules", change.placed.front().where,
                    "set discipline: tree");
}

// Marks the flow as known only now, not when the edit was ordered: senders put packets into it from
// then on, so the scheduler must have it first.
void EgressBook::carry_out(const EgressEdit& edit, EgressScheduler& scheduler) noexcept {
  const bool is_flow = edit.number < tags_.size();
  if (edit.kind == EgressEdit::Kind::kRemove) {
    if (is_flow) set_tag(edit.number, kNoTag);
    leave(edit.number);
    return;
  }
  scheduler.edit(edit);
  if (is_flow && edit.kind != EgressEdit::Kind::kRate) set_known(edit.number, edit.generation);
}

void EgressBook::carry_out(EgressScheduler& scheduler) noexcept {
  EgressEdit edit;
  while (edits_.dequeue(&edit, 1) == 1) carry_out(edit, scheduler);
  if (leaving_.empty()) [[likely]]
    return;
  const uint32_t number = leaving_.back();
  const bool is_again = is_there(number);
  if (!is_again && !scheduler.edit({.kind = EgressEdit::Kind::kRemove, .number = number})) {
    std::swap(leaving_.front(), leaving_.back());
    return;
  }
  is_leaving_[number] = false;
  leaving_.pop_back();
  if (is_again) return;
  if (number < tags_.size()) set_tag(number, kNoTag);
  has_left(number);
}

void EgressBook::leave(uint32_t number) noexcept {
  if (number < tags_.size() && !is_there(number)) set_tag(number, kLeavingTag);
  if (is_leaving_[number]) return;
  is_leaving_[number] = true;
  leaving_.push_back(number);
}

void EgressBook::leave_like(const EgressBook& old) noexcept {
  for (const uint32_t number : old.leaving_) leave(number);
}

std::unique_ptr<EgressBook> make_egress_book(const Args& args, const EgressSettings& settings) {
  if (settings.discipline == kTreeDiscipline) return std::make_unique<TreeBook>(args, settings);
  if (!args.list("nodes").empty() || !args.string("tree_file").empty()) {
    throw ConfigError("only a tree has nodes", args.where(), "set discipline: tree");
  }
  return std::make_unique<FlowBook>(args, settings.capacity.flows);
}

}  // namespace batchplane
