// SPDX-License-Identifier: BSD-3-Clause
// link_watch.h - notifies ports when a kernel interface changes: MTU, state, removal, recreation.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace batchplane::ports {

// One thread for all ports of the process; it ends with the last port.
class LinkWatch {
 public:
  // The instance of this process, made on first use.
  static std::shared_ptr<LinkWatch> instance();
  ~LinkWatch();
  LinkWatch(const LinkWatch&) = delete;
  LinkWatch& operator=(const LinkWatch&) = delete;

  // Calls `on_change` on the watch's thread after any link change. `owner` identifies the entry for remove(),
  // which waits until no call is in progress.
  void add(const void* owner, std::function<void()> on_change);
  void remove(const void* owner);

 private:
  LinkWatch();
  void run();

  struct Listener {
    const void* owner;
    std::function<void()> on_change;
  };
  std::mutex mutex_;
  std::vector<Listener> listeners_;
  int netlink_ = -1;
  int stop_ = -1;
  std::thread thread_;
};

}  // namespace batchplane::ports
