// SPDX-License-Identifier: BSD-3-Clause
// control_thread.h - calls a function once per period, or earlier on request.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "app/wire/lanes.h"

namespace batchplane::app {

// Owner of the thread. set_period() and kick(): any thread. The destructor waits for the current step.
class ControlThread {
 public:
  // Minimum wait between two steps: a period without packets tells nothing.
  static constexpr std::chrono::milliseconds kMinWait{1};

  ControlThread(Lane::Around around, std::function<void()> step);
  ~ControlThread();
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

  // 0: sleeps until a period is set.
  void set_period(uint64_t period_ns);
  // Runs the next step now instead of at the end of the period.
  void kick();

 private:
  using Clock = std::chrono::steady_clock;
  void work();

  std::function<void()> step_;
  std::mutex mutex_;
  std::condition_variable something_;
  uint64_t period_ns_ = 0;    // guarded by mutex_
  bool is_kicked_ = false;    // guarded by mutex_
  bool has_changed_ = false;  // guarded by mutex_
  bool must_end_ = false;     // guarded by mutex_
  std::thread thread_;
};

}  // namespace batchplane::app
