// SPDX-License-Identifier: BSD-3-Clause
// lanes.h - threads that run one job after another, so that slow requests delay only other slow ones.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace batchplane::app {

// Owner of the thread; post() from any thread. The destructor returns after the current job.
class Lane {
 public:
  // `around` sets up the thread, calls `body`, the lane's work, and cleans up.
  using Around = std::function<void(const std::function<void()>& body)>;
  explicit Lane(Around around = [](const std::function<void()>& body) { body(); });
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void post(std::function<void()> job);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable something_;
  std::deque<std::function<void()>> jobs_;  // guarded by mutex_
  bool must_end_ = false;                   // guarded by mutex_
  std::thread thread_;
};

}  // namespace batchplane::app
