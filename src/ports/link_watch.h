// SPDX-License-Identifier: BSD-3-Clause
// link_watch.h - tells ports when an interface of the kernel changes: MTU, state, removed, made again.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace batchplane::ports {

// One thread for all ports of the process; it ends with the last of them.
class LinkWatch {
 public:
  // The one of this process, made on first use.
  static std::shared_ptr<LinkWatch> instance();
  ~LinkWatch();
  LinkWatch(const LinkWatch&) = delete;
  LinkWatch& operator=(const LinkWatch&) = delete;

  // `on_change` is called on the watch's thread after any change of any link. `owner` is a name for
  // remove(), which returns when no call is under way.
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
