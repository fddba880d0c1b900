// SPDX-License-Identifier: BSD-3-Clause
// lanes.h - threads that do one job after the other, so that slow requests keep only their like
// waiting.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace batchplane::app {

// Owner of the thread; post() from any thread. The destructor ends after the job under way.
class Lane {
 public:
  // `around` gets the lane's work to call, between what it sets up and takes down on the thread.
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
