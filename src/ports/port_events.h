// SPDX-License-Identifier: BSD-3-Clause
// port_events.h - the latest events of a port: link down, up, removed, recreated.
#pragma once

#include <ctime>
#include <deque>
#include <mutex>
#include <string>

#include "base/value.h"

namespace batchplane::ports {

// Any thread except those that carry packets.
class PortEvents {
 public:
  static constexpr size_t kKept = 20;

  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    events_.push_back({std::time(nullptr), std::move(what)});
    if (events_.size() > kKept) events_.pop_front();
  }
  // Oldest first, each with wall-clock time in seconds.
  [[nodiscard]] List list() const {
    const std::lock_guard lock(mutex_);
    List list;
    for (const Event& event : events_) {
      list.push_back(Dict{{"at_s", static_cast<int64_t>(event.at_s)}, {"what", event.what}});
    }
    return list;
  }

 private:
  struct Event {
    std::time_t at_s;
    std::string what;
  };
  mutable std::mutex mutex_;
  std::deque<Event> events_;
};

}  // namespace batchplane::ports
