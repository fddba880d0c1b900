// SPDX-License-Identifier: BSD-3-Clause
// ipsec_mb_manager.h - state of intel-ipsec-mb: its functions for this CPU, and a ring of jobs.
#pragma once

#include <intel-ipsec-mb.h>

#include <string>

#include "base/error.h"

namespace batchplane {

// Large, and used by one worker at a time: each module has its own.
class IpsecMbManager {
 public:
  // Throws ConfigError if the library does not work on this machine.
  IpsecMbManager() : manager_(alloc_mb_mgr(0)) {
    if (manager_ == nullptr) {
      throw ConfigError("libIPSec_MB has no memory", "memory", "stop other programs");
    }
    init_mb_mgr_auto(manager_, nullptr);
    const int error = imb_get_errno(manager_);
    if (error == 0) return;
    free_mb_mgr(manager_);
    throw ConfigError(std::string("libIPSec_MB does not start: ") + imb_get_strerror(error),
                      "processor", "the library needs one with SSE4.2 and AES instructions");
  }
  ~IpsecMbManager() { free_mb_mgr(manager_); }
  IpsecMbManager(const IpsecMbManager&) = delete;
  IpsecMbManager& operator=(const IpsecMbManager&) = delete;

  [[nodiscard]] IMB_MGR* get() const { return manager_; }

 private:
  IMB_MGR* manager_;
};

// Fills and submits n jobs and returns when all are done: calls fill(job, i) and done(job) for
// each.
template <class Fill, class Done>
void run_ipsec_mb_jobs(IMB_MGR* manager, uint32_t n, Fill fill, Done done) noexcept {
  IMB_JOB* jobs[IMB_MAX_BURST_SIZE];
  const auto note = [&](uint32_t n_jobs) {
    for (uint32_t i = 0; i < n_jobs; ++i) done(*jobs[i]);
    return n_jobs;
  };
  uint32_t n_done = 0;
  for (uint32_t at = 0; at < n;) {
    const uint32_t wanted = n - at < IMB_MAX_BURST_SIZE ? n - at : IMB_MAX_BURST_SIZE;
    const uint32_t given = IMB_GET_NEXT_BURST(manager, wanted, jobs);
    for (uint32_t i = 0; i < given; ++i) fill(*jobs[i], at + i);
    n_done += note(IMB_SUBMIT_BURST_NOCHECK(manager, given, jobs));
    at += given;
    if (given < wanted) n_done += note(IMB_FLUSH_BURST(manager, IMB_MAX_BURST_SIZE, jobs));
  }
  while (n_done < n) {
    const uint32_t left = n - n_done < IMB_MAX_BURST_SIZE ? n - n_done : IMB_MAX_BURST_SIZE;
    const uint32_t more = note(IMB_FLUSH_BURST(manager, left, jobs));
    if (more == 0) return;  // the library gave up on the remaining jobs
    n_done += more;
  }
}

}  // namespace batchplane
