// SPDX-License-Identifier: BSD-3-Clause
// daemon.cc - the loop over socket, signals and clock.
#include "app/start/daemon.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "app/runtime/requests.h"
#include "app/wire/control_socket.h"
#include "app/wire/json_value.h"
#include "app/wire/messages.h"
#include "base/own_file.h"

namespace batchplane::app {
namespace {

constexpr int kLongestWaitMs = 1000;
constexpr int kFlushMs = 2000;

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  return set;
}

// Clients that requested the stop wait for the report.
struct Waiting {
  std::mutex mutex;
  std::vector<std::pair<ControlSocket::ClientId, Value>> clients;  // guarded by mutex
};

// Writes pid, name and pipeline beside the socket, for programs that search for daemons.
class StateFile {
 public:
  StateFile(const std::string& socket_path, const Runtime& runtime, const std::string& pipeline) {
    path_ = socket_path.ends_with(".sock") ? socket_path.substr(0, socket_path.size() - 5) + ".json"
                                           : socket_path + ".json";
    const std::string text = to_json(Dict{{"pid", static_cast<int64_t>(getpid())},
                                          {"name", runtime.name()},
                                          {"started_s", static_cast<int64_t>(time(nullptr))},
                                          {"version", kDaemonVersion},
                                          {"pipeline", pipeline}});
    // Removes what another daemon left, which may be a link, instead of writing into it.
    unlink(path_.c_str());
    std::string why_not;
    const Fd fd(create_own_file(path_, why_not));
    if (fd.get() >= 0 && write(fd.get(), text.data(), text.size()) < 0) why_not = strerror(errno);
    if (!why_not.empty()) {
      log_line("the state file " + path_ + " cannot be written: " + why_not);
    }
  }
  ~StateFile() { unlink(path_.c_str()); }
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

 private:
  std::string path_;
};

// True when a signal requests the end.
bool take_signal(int fd) {
  signalfd_siginfo info{};
  bool must_stop = false;
  while (read(fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    // SIGHUP: the terminal that started us is gone, which does not matter.
    if (info.ssi_signo != SIGHUP) must_stop = true;
  }
  return must_stop;
}

int wait_ms(const Runtime& runtime, double duration_s) {
  if (duration_s <= 0) return kLongestWaitMs;
  const double left_ms = duration_s * 1e3 - static_cast<double>(runtime.uptime_ns()) / 1e6;
  return static_cast<int>(std::clamp(left_ms + 1, 0.0, static_cast<double>(kLongestWaitMs)));
}

void say_ready() {
  std::printf("ready\n");
  std::fflush(stdout);
}

std::string balance_text(const Value& report) {
  const Value& balance = report["balance"];
  const auto number = [&](const char* key) { return std::to_string(balance[key].as_int()); };
  return number("in_pkts") + " packets in + " + number("originated_pkts") +
         " made here = " + number("sent_pkts") + " sent + " + number("dropped_pkts") +
         " dropped + " + number("held_pkts") + " held";
}

}  // namespace

void block_signals() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

bool serve(Startup& startup) {
  Runtime& runtime = *startup.runtime;
  std::atomic<bool> must_stop{false};
  Waiting waiting;
  Requests* requests = nullptr;
  ControlSocket socket([&](ControlSocket::ClientId client,
                           std::string line) { requests->take(client, std::move(line)); },
                       [&](ControlSocket::ClientId client) {
                         if (requests != nullptr) requests->forget(client);
                       });
  const std::string& path = startup.options.socket_path;
  socket.listen_on(path);
  const StateFile state(path, runtime, startup.spec.name);
  const sigset_t set = stop_signals();
  const Fd signals(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  Value report;
  {
    Requests dealt(
        runtime,
        [&](ControlSocket::ClientId client, std::string line) {
          socket.answer(client, std::move(line));
        },
        [&](ControlSocket::ClientId client, const Value& id) {
          {
            const std::lock_guard lock(waiting.mutex);
            waiting.clients.emplace_back(client, id);
          }
          must_stop.store(true, std::memory_order_release);
          socket.answer(0, "");  // wakes the loop; no client has id 0
        });
    requests = &dealt;
    enter_control_core(startup.cores, true);
    log_line("'" + runtime.name() + "' is ready");
    say_ready();
    while (!must_stop.load(std::memory_order_acquire)) {
      const bool is_signal =
          socket.poll_once(wait_ms(runtime, startup.options.duration_s), signals.get());
      if (is_signal && take_signal(signals.get())) break;
      if (startup.options.duration_s > 0 && wait_ms(runtime, startup.options.duration_s) == 0)
        break;
    }
    report = runtime.stop();
    requests = nullptr;
  }
  const bool is_balanced = runtime.is_balanced();
  log_line("stopped: " + balance_text(report));
  if (!is_balanced)
    log_line("error: packets are missing: what came in is not what left, was dropped or is held");
  for (const auto& [client, id] : waiting.clients) {
    socket.answer(client, good_answer(id, Dict{{"report", report}}));
  }
  socket.flush(kFlushMs);
  return is_balanced;
}

}  // namespace batchplane::app
