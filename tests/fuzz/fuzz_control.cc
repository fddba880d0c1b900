// SPDX-License-Identifier: BSD-3-Clause
// fuzz_control.cc - bytes into the control socket of a small engine: each line is answered with
// one.
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "app/plan/environment_build.h"
#include "app/plan/memory_plan.h"
#include "app/runtime/requests.h"
#include "app/wire/json_value.h"
#include "fuzz.h"
#include "spec/config_json.h"

namespace batchplane::fuzz {
namespace {

using app::ControlSocket;
using app::Fd;

constexpr const char* kPipeline = R"({
  "version": 1, "name": "fuzz",
  "interfaces": [{"name": "lan", "mac": "02:00:00:00:00:01", "addresses": ["10.0.1.1/24"]}],
  "modules": {"in": {"kind": "source", "params": {"burst_pkts": 4, "flows": [{"dst_ip": "10.0.1.2"}]}},
              "lookup": {"kind": "ipv4_lookup", "params": {"table": "main", "interfaces": true,
                         "max_prefixes": 256, "routes": [{"prefix": "0.0.0.0/0", "via": "10.0.1.2"}]}},
              "ttl": {"kind": "ttl"},
              "neighbour": {"kind": "neighbour", "params": {"table": "main"}},
              "match": {"kind": "exact_match", "params": {"fields": [{"offset": 12, "size_bytes": 2}],
                                                          "default_gate": 0}},
              "out": {"kind": "sink"}},
  "edges": [{"from": "in", "to": "lookup"}, {"from": "lookup", "gate": 0, "to": "ttl"},
            {"from": "ttl", "to": "neighbour"}, {"from": "neighbour", "gate": 0, "to": "match"},
            {"from": "match", "gate": 0, "to": "out"}],
  "flows": [{"name": "f", "path": ["in", "lookup", "ttl", "neighbour", "match", "out"], "delay_slo_ns": 1000000}]
})";

// Engine and socket in this thread: what an answer needs from the worker is run here too.
class Daemon {
 public:
  Daemon() {
    std::vector<ConfigError> errors;
    PipelineSpec spec = spec_from_value(app::parse_json(kPipeline, "fuzz"), errors);
    spec.workers = {{"w0", -1}};
    auto quiescence = std::make_shared<Quiescence>();
    auto env = app::build_environment(spec, app::PortsAre::kReal, {}, errors);
    if (!errors.empty()) fail(errors.front().line());
    env->quiescence = quiescence.get();
    auto graph = build_graph(spec, std::move(env));
    auto pool = std::make_unique<PacketPool>("fuzz_control", app::pool_pkts_for(*graph),
                                             app::data_bytes_needed(spec, *graph->env));
    auto engine = std::make_unique<Engine>(std::move(graph), std::move(pool), quiescence);
    worker_ = engine->workers().front().get();
    worker_->use_virtual_clock(&now_ns_);
    const app::CorePlan cores = app::plan_cores("");
    runtime_ = std::make_unique<app::Runtime>(
        app::Runtime::Parts{"fuzz",
                            cores,
                            {},
                            quiescence,
                            std::move(engine),
                            std::make_unique<app::GeneratorSet>(cores.control_core),
                            app::SnapshotCache(0, 0)});
  }

  // A client that sends `bytes`, reads all answers and hangs up.
  void talk(const uint8_t* data, size_t size) {
    int fds[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0,
            "no socket");
    const Fd client(fds[0]);
    socket_.adopt(Fd(fds[1]));
    n_answered_ = 0;
    size_t sent_bytes = 0;
    bool has_hung_up = false;
    while (socket_.n_clients() != 0) {
      if (sent_bytes < size) {
        const ssize_t n = send(client.get(), data + sent_bytes, size - sent_bytes, MSG_NOSIGNAL);
        if (n > 0) sent_bytes += static_cast<size_t>(n);
      } else if (!has_hung_up) {
        shutdown(client.get(), SHUT_WR);
        has_hung_up = true;
      }
      socket_.poll_once(0, -1);
      receive(client.get());
    }
    receive(client.get());
    require(answers_.empty(), "an answer without an end of line");
    require(n_received_ >= n_answered_, "an answer was lost");
    n_received_ = 0;
  }

 private:
  void answer(ControlSocket::ClientId client, const std::string& line) {
    Value id;
    ++n_answered_;
    try {
      app::Request request = app::parse_request(line, id);
      // A trace waits for a worker on its own thread, and stop ends the program.
      if (request.cmd == "trace" && request.args.is_dict()) {
        Dict args = request.args.as_dict();
        args["timeout_ns"] = 1;
        request.args = args;
      }
      socket_.answer(client, app::answer_request(request, *runtime_, bulk_));
    } catch (const ConfigError& error) {
      socket_.answer(client, app::bad_answer(id, {error}));
    }
    now_ns_ += 100'000;
    worker_->loop_once();
  }
  void receive(int fd) {
    char bytes[65536];
    for (ssize_t n = 0; (n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0;) {
      answers_.append(bytes, static_cast<size_t>(n));
    }
    for (size_t end = 0; (end = answers_.find('\n')) != std::string::npos;
         answers_.erase(0, end + 1)) {
      const Value answer = app::parse_json(answers_.substr(0, end), "answer");
      require(answer["ok"].is_bool() && answer["v"].is_int(), "an answer without ok or v");
      if (!answer["ok"].as_bool())
        require(!answer["errors"].as_list().empty(), "refused without a reason");
      tally.accepted += answer["ok"].as_bool() ? 1 : 0;
      ++n_received_;
    }
  }

  uint64_t now_ns_ = 1'000'000'000;
  Worker* worker_ = nullptr;
  std::unique_ptr<app::Runtime> runtime_;
  app::BulkEdits bulk_;
  ControlSocket socket_{
      [this](ControlSocket::ClientId client, const std::string& line) { answer(client, line); }};
  std::string answers_;
  uint64_t n_answered_ = 0;
  uint64_t n_received_ = 0;
};

}  // namespace

int fuzz_control(const uint8_t* data, size_t size) {
  static Daemon daemon;
  daemon.talk(data, size);
  return 0;
}

}  // namespace batchplane::fuzz
