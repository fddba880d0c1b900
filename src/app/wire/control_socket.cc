// SPDX-License-Identifier: BSD-3-Clause
// control_socket.cc - the poll loop over all clients.
#include "app/wire/control_socket.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "app/wire/json_value.h"
#include "app/wire/messages.h"

namespace batchplane::app {
namespace {

constexpr uint64_t kAcceptPauseNs = 100'000'000;

uint64_t steady_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

ControlSocket::ControlSocket(OnLine on_line, OnGone on_gone)
    : on_line_(std::move(on_line)),
      on_gone_(std::move(on_gone)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

ControlSocket::~ControlSocket() {
  if (!path_.empty()) unlink(path_.c_str());
}

ControlSocket::ClientId ControlSocket::adopt(Fd fd) {
  const ClientId id = ++last_id_;
  Client& client = clients_[id];
  client.fd = std::move(fd);
  client.progress_ns = steady_ns();
  client.asked = ++n_asked_;
  return id;
}

bool ControlSocket::make_room() {
  auto idlest = clients_.end();
  for (auto it = clients_.begin(); it != clients_.end(); ++it) {
    const Client& client = it->second;
    if (client.is_busy || client.is_closing || !client.out.empty()) continue;
    if (idlest == clients_.end() || client.asked < idlest->second.asked) idlest = it;
  }
  if (idlest == clients_.end()) return false;
  turn_away(idlest->second, "there are too many clients, and this one asked nothing for longest",
            "connect again");
  return true;
}

bool ControlSocket::is_allowed(int fd) const {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == geteuid() || peer.uid == 0;
}

void ControlSocket::accept_clients() {
  while (true) {
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.get() < 0) {
      // Out of descriptors: the waiting client stays readable, so pause accepting for a while.
      if (errno != EAGAIN && errno != EINTR) no_accept_until_ns_ = steady_ns() + kAcceptPauseNs;
      return;
    }
    const bool is_allowed_peer = is_allowed(fd.get());
    const bool is_full = clients_.size() >= kMaxClients;
    const bool has_room = !is_full || (is_allowed_peer && make_room());
    Client& client = clients_[adopt(std::move(fd))];
    if (!is_allowed_peer) {
      log_line("a client of another user was refused");
      turn_away(client, "this daemon belongs to another user", "run as that user or as root");
    } else if (!has_room) {
      turn_away(client, "there are too many clients", "close one");
    }
  }
}

void ControlSocket::turn_away(Client& client, const std::string& message, const std::string& fix) {
  client.out +=
      to_json(Dict{{"v", 1},
                   {"id", Value()},
                   {"ok", false},
                   {"errors", List{Dict{{"where", ""}, {"message", message}, {"fix", fix}}}}}) +
      "\n";
  client.is_closing = true;
  write_to(client);
}

void ControlSocket::read_from(ClientId id, Client& client) {
  char bytes[65536];
  const ssize_t n = recv(client.fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0) {
    if (errno != EAGAIN && errno != EINTR) client.is_ended = client.is_closing = true;
    return;
  }
  if (n == 0) {
    client.is_ended = true;
    return;
  }
  client.asked = ++n_asked_;
  client.in.append({bytes, static_cast<size_t>(n)});
  hand_out(id, client);
}

void ControlSocket::hand_out(ClientId id, Client& client) {
  if (client.is_busy || client.is_closing || !client.out.empty()) return;
  if (client.in.is_too_long()) {
    turn_away(client, "the request is longer than 1 MiB",
              "send large tables in parts, or as a file");
    return;
  }
  std::optional<std::string> line = client.in.take();
  if (!line) return;
  client.is_busy = true;
  on_line_(id, std::move(*line));
}

void ControlSocket::write_to(Client& client) {
  while (client.sent_bytes < client.out.size()) {
    const ssize_t n = send(client.fd.get(), client.out.data() + client.sent_bytes,
                           client.out.size() - client.sent_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      client.is_ended = client.is_closing = true;
      client.out.clear();
      client.sent_bytes = 0;
      return;
    }
    client.sent_bytes += static_cast<size_t>(n);
    client.progress_ns = steady_ns();
  }
  client.out.clear();
  client.out.shrink_to_fit();
  client.sent_bytes = 0;
}

void ControlSocket::answer(ClientId client, std::string line) {
  {
    const std::lock_guard lock(answers_mutex_);
    answers_.emplace_back(client, std::move(line));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_.get(), &one, sizeof one);
}

void ControlSocket::collect_answers() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = read(wake_.get(), &count, sizeof count);
  std::vector<std::pair<ClientId, std::string>> ready;
  {
    const std::lock_guard lock(answers_mutex_);
    ready.swap(answers_);
  }
  for (auto& [id, line] : ready) {
    const auto it = clients_.find(id);
    if (it == clients_.end()) continue;  // it left in the meantime
    Client& client = it->second;
    client.is_busy = false;
    client.out = std::move(line);
    client.out += '\n';
    client.progress_ns = steady_ns();
    write_to(client);
    hand_out(id, client);
  }
}

void ControlSocket::remove_gone(uint64_t now_ns) {
  const auto is_gone = [&](const Client& client) {
    const bool has_output = !client.out.empty();
    if (has_output && now_ns - client.progress_ns > kStuckNs) return true;
    if (client.is_busy) return client.is_closing;  // its answer will be discarded
    if (has_output) return false;
    return client.is_closing || (client.is_ended && !client.in.has_line());
  };
  std::vector<ClientId> gone;
  for (const auto& [id, client] : clients_) {
    if (is_gone(client)) gone.push_back(id);
  }
  for (const ClientId id : gone) {
    clients_.erase(id);
    on_gone_(id);
  }
}

bool ControlSocket::poll_once(int timeout_ms, int extra_fd) {
  std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}, {extra_fd, POLLIN, 0}};
  const bool is_accepting = steady_ns() >= no_accept_until_ns_;
  fds.push_back({is_accepting ? listener_.get() : -1, POLLIN, 0});
  std::vector<ClientId> ids;
  for (const auto& [id, client] : clients_) {
    short events = 0;
    if (!client.out.empty()) {
      events = POLLOUT;
    } else if (!client.is_busy && !client.is_ended) {
      events = POLLIN;
    }
    // A client that disconnected while its request runs is always readable: poll it again after the answer.
    fds.push_back({events == 0 ? -1 : client.fd.get(), events, 0});
    ids.push_back(id);
  }
  poll(fds.data(), fds.size(), timeout_ms);
  if (fds[0].revents != 0) collect_answers();
  for (size_t i = 0; i < ids.size(); ++i) {
    const short happened = fds[3 + i].revents;
    const auto it = clients_.find(ids[i]);
    if (happened == 0 || it == clients_.end()) continue;
    if ((happened & POLLOUT) != 0) {
      write_to(it->second);
      hand_out(ids[i], it->second);
    } else if (!it->second.is_busy) {
      read_from(ids[i], it->second);
    }
    if ((happened & (POLLERR | POLLNVAL)) != 0) it->second.is_ended = it->second.is_closing = true;
  }
  if ((fds[2].revents & POLLIN) != 0) accept_clients();
  remove_gone(steady_ns());
  return (fds[1].revents & POLLIN) != 0;
}

void ControlSocket::flush(int timeout_ms) {
  listener_ = Fd();
  const uint64_t end_ns = steady_ns() + static_cast<uint64_t>(timeout_ms) * 1'000'000;
  collect_answers();
  for (uint64_t now_ns = steady_ns(); now_ns < end_ns; now_ns = steady_ns()) {
    std::vector<pollfd> fds;
    for (auto& [id, client] : clients_) {
      write_to(client);
      if (!client.out.empty()) fds.push_back({client.fd.get(), POLLOUT, 0});
    }
    if (fds.empty()) return;
    poll(fds.data(), fds.size(), static_cast<int>((end_ns - now_ns) / 1'000'000) + 1);
  }
}

}  // namespace batchplane::app
