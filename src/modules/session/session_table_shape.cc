// SPDX-License-Identifier: BSD-3-Clause
// session_table_shape.cc - adds and removes the leaves of a table's sessions in schedulers along
// with their rules.
#include <utility>

#include "base/error.h"
#include "modules/session/session_table.h"

namespace batchplane::session {

void SessionTable::complete() {
  shaper_.check();
  if (declare_) std::exchange(declare_, nullptr)();
  if (shaper_.is_filled()) return;
  stage_shapes({}, {}, "");
  shaper_.settle(true);
}

// In reverse order, so that the next session gets the same slots.
void SessionTable::give_back_slots(const Edit& edit) {
  for (size_t i = edit.taken_slots.size(); i > 0; --i) {
    const uint32_t slot = edit.taken_slots[i - 1];
    body_->free_slots[is_uplink_slot(slot) ? 1 : 0].push_front(slot);
  }
}

// `sessions` have their slots; sessions in `leaving` that are not among them are removed.
void SessionTable::stage_shapes(const std::vector<Session>& sessions,
                                const std::set<uint64_t>& leaving, const std::string& where) {
  std::vector<SessionShaper::Change> changes;
  std::set<uint64_t> given;
  for (const Session& session : sessions) {
    given.insert(session.seid);
    changes.push_back({known(session.seid), &session, place_of(session, where)});
  }
  for (const uint64_t seid : leaving) {
    if (!given.contains(seid)) changes.push_back({known(seid), nullptr, where});
  }
  if (!shaper_.is_filled()) {
    for (const auto& [seid, session] : body_->sessions) {
      if (!leaving.contains(seid)) changes.push_back({nullptr, &session, where});
    }
  }
  shaper_.stage(changes, [this](uint32_t slot) { return mark_of_slot(slot); });
}

// Slots are assigned first, and leaves exist before packets carry their marks.
void SessionTable::take_leaves(std::vector<Session>& sessions, const std::set<uint64_t>& leaving,
                               Edit& edit, const std::string& where) {
  for (Session& session : sessions) take_slots(session, known(session.seid), edit);
  try {
    stage_shapes(sessions, leaving, where);
  } catch (const ConfigError&) {
    give_back_slots(edit);
    throw;
  }
  shaper_.settle(true);
}

}  // namespace batchplane::session
