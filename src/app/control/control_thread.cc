// SPDX-License-Identifier: BSD-3-Clause
#include "app/control/control_thread.h"

namespace batchplane::app {

ControlThread::ControlThread(Lane::Around around, std::function<void()> step)
    : step_(std::move(step)),
      thread_([this, around = std::move(around)] { around([this] { work(); }); }) {}

ControlThread::~ControlThread() {
  {
    const std::lock_guard lock(mutex_);
    must_end_ = true;
  }
  something_.notify_all();
  thread_.join();
}

void ControlThread::set_period(uint64_t period_ns) {
  {
    const std::lock_guard lock(mutex_);
    period_ns_ = period_ns;
    has_changed_ = true;
  }
  something_.notify_all();
}

void ControlThread::kick() {
  {
    const std::lock_guard lock(mutex_);
    is_kicked_ = true;
  }
  something_.notify_all();
}

void ControlThread::work() {
  std::unique_lock lock(mutex_);
  Clock::time_point last = Clock::now();
  Clock::time_point due = last;
  while (!must_end_) {
    if (period_ns_ == 0) {
      something_.wait(lock, [this] { return must_end_ || period_ns_ != 0; });
      last = due = Clock::now();
      has_changed_ = true;
      continue;
    }
    if (has_changed_) {
      has_changed_ = false;
      due = last + std::chrono::nanoseconds(period_ns_);
    }
    const Clock::time_point wake = is_kicked_ ? std::min(due, last + kMinWait) : due;
    if (Clock::now() < wake) {
      const bool was_kicked = is_kicked_;
      something_.wait_until(lock, wake,
                            [&] { return must_end_ || has_changed_ || is_kicked_ != was_kicked; });
      continue;
    }
    const bool was_due = Clock::now() >= due;
    is_kicked_ = false;
    lock.unlock();
    step_();
    lock.lock();
    // Missed periods are not made up for: the counts just read include them.
    last = Clock::now();
    const std::chrono::nanoseconds period(period_ns_);
    due = was_due ? std::max<Clock::time_point>(due + period, last + kMinWait) : last + period;
  }
}

}  // namespace batchplane::app
