// SPDX-License-Identifier: BSD-3-Clause
// lanes.cc - a queue of jobs and the thread that does them.
#include "app/wire/lanes.h"

namespace batchplane::app {

Lane::Lane(Around around)
    : thread_([this, around = std::move(around)] { around([this] { work(); }); }) {}

Lane::~Lane() {
  {
    const std::lock_guard lock(mutex_);
    must_end_ = true;
  }
  something_.notify_all();
  thread_.join();
}

void Lane::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  something_.notify_one();
}

void Lane::work() {
  while (true) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      something_.wait(lock, [this] { return must_end_ || !jobs_.empty(); });
      if (must_end_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace batchplane::app
