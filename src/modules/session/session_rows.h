// SPDX-License-Identifier: BSD-3-Clause
// session_rows.h - formats sessions, reports and removed rules for the answers of commands.
#pragma once

#include <vector>

#include "base/value.h"
#include "modules/session/session_table.h"

namespace batchplane::session {

[[nodiscard]] Dict row_of(const SessionTable& table, const Session& session);
[[nodiscard]] Dict report_row(const ReportBook::Entry& entry);
[[nodiscard]] List ended_rows(const std::vector<Ended>& all);

}  // namespace batchplane::session
