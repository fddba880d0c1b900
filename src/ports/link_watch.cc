// SPDX-License-Identifier: BSD-3-Clause
#include "ports/link_watch.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

namespace batchplane::ports {

std::shared_ptr<LinkWatch> LinkWatch::instance() {
  static std::mutex mutex;
  static std::weak_ptr<LinkWatch> only;
  const std::lock_guard lock(mutex);
  std::shared_ptr<LinkWatch> watch = only.lock();
  if (watch == nullptr) only = watch = std::shared_ptr<LinkWatch>(new LinkWatch);
  return watch;
}

// Without the socket there are no notifications; ports then notice changes when a send fails.
LinkWatch::LinkWatch()
    : netlink_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (netlink_ < 0 || stop_ < 0 ||
      bind(netlink_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return;
  }
  // Blocks all signals except the one that asks each thread to drop its capabilities
  // (app/start/privileges.cc).
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigdelset(&all, SIGRTMAX);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LinkWatch::~LinkWatch() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!write(stop_, &one, sizeof one);
    thread_.join();
  }
  if (netlink_ >= 0) close(netlink_);
  if (stop_ >= 0) close(stop_);
}

void LinkWatch::add(const void* owner, std::function<void()> on_change) {
  const std::lock_guard lock(mutex_);
  listeners_.push_back({owner, std::move(on_change)});
}

void LinkWatch::remove(const void* owner) {
  const std::lock_guard lock(mutex_);
  std::erase_if(listeners_, [owner](const Listener& each) { return each.owner == owner; });
}

// Messages are not parsed: listeners query the state themselves, so lost messages do no harm.
void LinkWatch::run() {
  pollfd waiting[2] = {{netlink_, POLLIN, 0}, {stop_, POLLIN, 0}};
  char messages[16'384];
  while (true) {
    if (poll(waiting, 2, -1) < 0 && errno != EINTR) return;
    if ((waiting[1].revents & POLLIN) != 0) return;
    while (recv(netlink_, messages, sizeof messages, 0) > 0 || errno == ENOBUFS) {
      errno = 0;
    }
    const std::lock_guard lock(mutex_);
    for (const Listener& listener : listeners_) listener.on_change();
  }
}

}  // namespace batchplane::ports
