// SPDX-License-Identifier: BSD-3-Clause
// session_watch.h - checks usage reporting rules that have thresholds or quotas, a few at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "modules/session/session_table.h"

namespace batchplane::session {

// Usage since the last report. Any thread.
[[nodiscard]] Used used_since_report(const SessionTable& table, const RuleTables& tables,
                                     uint32_t place) noexcept;

// Owner: one worker.
class UsageWatcher {
 public:
  static constexpr uint64_t kTickNs = 200'000;

  explicit UsageWatcher(SessionTable& table) : ring_(table.make_ring()) {}

  void look(const SessionTable& table, uint64_t now_ns, uint64_t budget_ns) noexcept;

 private:
  void look_at(const SessionTable& table, const RuleTables& tables, uint32_t place,
               uint64_t now_ns) noexcept;

  std::shared_ptr<ReportRing> ring_;
  uint32_t next_ = 0;
};

}  // namespace batchplane::session
