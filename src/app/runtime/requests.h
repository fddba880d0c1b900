// SPDX-License-Identifier: BSD-3-Clause
// requests.h - handles requests of the control socket; one table entry per command.
#pragma once

#include <functional>
#include <string>

#include "app/runtime/bulk.h"
#include "app/runtime/runtime.h"
#include "app/wire/control_socket.h"
#include "app/wire/lanes.h"

namespace batchplane::app {

inline constexpr int64_t kProtocolVersion = 1;

// A received request: its answer carries the same id.
struct Request {
  Value id;
  std::string cmd;
  Value args;
};

// Throws ConfigError; sets `id` as soon as it is known, for the error answer.
Request parse_request(const std::string& line, Value& id);
std::string good_answer(const Value& id, const Value& result);
std::string bad_answer(const Value& id, const std::vector<ConfigError>& errors,
                       const std::map<std::string, std::string>& source_map = {});

// Executes any command except `stop`; never throws.
std::string answer_request(const Request& request, Runtime& runtime, BulkEdits& bulk,
                           ControlSocket::ClientId client = 0);

// Distributes requests to lanes: quick ones, slow ones (checks, tables), and traces, which wait for traffic.
class Requests {
 public:
  using Answer = std::function<void(ControlSocket::ClientId, std::string)>;
  using Stop = std::function<void(ControlSocket::ClientId, const Value& id)>;

  Requests(Runtime& runtime, Answer answer, Stop stop);
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  // On the socket's thread; the answer is sent later, by another thread.
  void take(ControlSocket::ClientId client, std::string line);
  // On the socket's thread: this client has disconnected.
  void forget(ControlSocket::ClientId client);

 private:
  // A client that waits for the end of a period.
  struct Waiting {
    ControlSocket::ClientId client;
    Request request;
  };
  void route(ControlSocket::ClientId client, const std::string& line);
  void serve_waiting(bool is_end);

  Runtime& runtime_;
  Answer answer_;
  Stop stop_;
  BulkEdits bulk_;
  std::mutex waiting_mutex_;
  std::vector<Waiting> waiting_;  // guarded by waiting_mutex_
  // Declared last, so that the lanes end before the members that their jobs use.
  Lane trace_lane_;
  Lane slow_lane_;
  Lane quick_lane_;
};

}  // namespace batchplane::app
