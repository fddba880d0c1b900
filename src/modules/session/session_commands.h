// SPDX-License-Identifier: BSD-3-Clause
// session_commands.h - how modules share a table of sessions, and the commands on it: declare, add,
// modify, delete, replace, list, save.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/module/args.h"
#include "modules/session/session_table.h"

namespace batchplane::session {

// Owner: a module, on the control thread.
class SessionCommands {
 public:
  explicit SessionCommands(const Args& args);

  [[nodiscard]] SessionTable& table() const { return *table_; }
  Value run(const std::string& verb, const Value& args);
  [[nodiscard]] Dict show() const;
  [[nodiscard]] Dict saved_params() const;

 private:
  void declare(const Args& args);
  Value modify(const Value& args);
  [[nodiscard]] Session modified(const Value& change, const std::string& where) const;
  [[nodiscard]] Value list(const Value& args) const;
  [[nodiscard]] Value reports(const Value& args) const;

  const std::string name_;
  std::shared_ptr<SessionTable> table_;
  std::string file_;
  Dict synthetic_;
};

// table, sessions, file, synthetic, deleted_sessions.
[[nodiscard]] std::vector<ParamSpec> session_params();
inline constexpr const char* kSessionNotes =
    "Modules that name the same table share its sessions; one of them says what they are. Live "
    "commands: add {seid, ..} or {file}, modify {seid, pdrs, fars, qers, urrs} (rules by id; "
    "{id, remove: true} takes one away, null a key; a quota that is named is granted anew), delete "
    "{seid}, replace, list {seid, ue, limit}, reports {after, seid, limit} (what URRs with "
    "thresholds or quotas, URRs that go and FARs that buffer report); all but list and reports "
    "take "
    "{items: [...]} for many, and answer what was used under rules that went.";

}  // namespace batchplane::session
