// SPDX-License-Identifier: BSD-3-Clause
// control_socket.h - the daemon's UNIX socket: clients, their lines and the answers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "app/wire/line_buffer.h"

namespace batchplane::app {

// Owner of a file descriptor.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd();
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

// poll_once() and its callbacks: one thread. answer(): any thread. Nothing blocks: a client that does not
// read delays only its own answers, and is disconnected after a while.
class ControlSocket {
 public:
  static constexpr size_t kMaxRequestBytes = 1U << 20;
  static constexpr size_t kMaxAnswerBytes = 64U << 20;
  // A further client replaces the one that has been silent for the longest time.
  static constexpr size_t kMaxClients = 64;
  static constexpr uint64_t kStuckNs = 30'000'000'000;

  using ClientId = uint64_t;
  // Called for one line at a time per client; the next one follows after answer().
  using OnLine = std::function<void(ClientId, std::string)>;

  // Called when a client has left or was disconnected.
  using OnGone = std::function<void(ClientId)>;

  explicit ControlSocket(
      OnLine on_line, OnGone on_gone = [](ClientId) {});
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  // Creates the folder (0700) if missing, and the socket (0600) in it. Replaces a stale socket; throws
  // ConfigError when somebody is listening.
  void listen_on(const std::string& path);
  // Throws the error that listen_on() would if a daemon is listening at `path`; changes nothing.
  static void require_free(const std::string& path);
  // Takes over an open connection; for tests.
  ClientId adopt(Fd fd);

  // One round: accepts, reads, hands out lines, writes. Waits at most timeout_ms for events; `extra_fd` (or
  // -1) also ends the wait, and true is returned when it is readable.
  bool poll_once(int timeout_ms, int extra_fd);
  // Answers the client's current line; appends the newline.
  void answer(ClientId client, std::string line);
  // Writes remaining output for at most timeout_ms; no longer accepts or reads.
  void flush(int timeout_ms);

  [[nodiscard]] size_t n_clients() const { return clients_.size(); }

 private:
  struct Client {
    Fd fd;
    LineBuffer in{kMaxRequestBytes};
    std::string out;
    size_t sent_bytes = 0;
    uint64_t progress_ns = 0;
    uint64_t asked = 0;       // order of its last request: higher is later
    bool is_busy = false;     // a line is being answered
    bool is_closing = false;  // disconnects once `out` is written
    bool is_ended = false;    // has closed its sending side
  };

  void accept_clients();
  [[nodiscard]] bool is_allowed(int fd) const;
  void read_from(ClientId id, Client& client);
  void hand_out(ClientId id, Client& client);
  void write_to(Client& client);
  void collect_answers();
  // False when all clients wait for an answer, or have not read theirs.
  bool make_room();
  void turn_away(Client& client, const std::string& message, const std::string& fix);
  void remove_gone(uint64_t now_ns);

  OnLine on_line_;
  OnGone on_gone_;
  std::string path_;
  Fd listener_;
  Fd wake_;
  std::map<ClientId, Client> clients_;
  ClientId last_id_ = 0;
  uint64_t n_asked_ = 0;
  uint64_t no_accept_until_ns_ = 0;
  std::mutex answers_mutex_;
  std::vector<std::pair<ClientId, std::string>> answers_;  // guarded by answers_mutex_
};

}  // namespace batchplane::app
