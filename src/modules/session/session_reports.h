// SPDX-License-Identifier: BSD-3-Clause
// session_reports.h - session reports from the user plane to the control plane, as in PFCP: usage,
// and downlink data that waits for a user.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/spsc_ring.h"
#include "modules/session/session_rules.h"

namespace batchplane::session {

struct Report {
  enum class Kind : uint8_t { kUsage, kDownlinkData };
  enum class Trigger : uint8_t { kVolume, kTime, kQuota, kTermination };

  Kind kind = Kind::kUsage;
  Trigger trigger = Trigger::kVolume;
  uint8_t used_up = 0;   // bitmap of quota kinds
  uint32_t session = 0;  // its number
  uint32_t slot = 0;     // downlink data: the rule's slot
  uint32_t urr = 0;
  uint64_t sequence = 0;  // among the URR's reports, from 0
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  Used used;
};

// From one worker to the control thread. If the ring is full, the worker keeps the report and
// retries.
class ReportRing {
 public:
  static constexpr uint32_t kReports = 1024;

  bool put(const Report& report) noexcept { return ring_.enqueue(&report, 1) == 1; }
  bool take(Report& report) { return ring_.dequeue(&report, 1) == 1; }

 private:
  SpscRing<Report> ring_{kReports};
};

// The latest reports, numbered from 1. Control thread.
struct ReportBook {
  static constexpr size_t kMaxKept = 4096;

  struct Entry {
    uint64_t number = 0;
    uint64_t seid = 0;
    uint32_t pdr = 0;
    Report report;
  };
  std::deque<Entry> entries;
  uint64_t n_ever = 0;
  size_t max_kept = kMaxKept;
  std::vector<std::shared_ptr<ReportRing>> rings;

  void add(const Report& report, uint64_t seid, uint32_t pdr) {
    entries.push_back({++n_ever, seid, pdr, report});
    while (entries.size() > max_kept) entries.pop_front();
  }
  // Keeps n reports, which rules produce all at once when they are removed: nobody could fetch them
  // in between.
  void expect(size_t n) { max_kept = std::max(n, kMaxKept); }
};

}  // namespace batchplane::session
