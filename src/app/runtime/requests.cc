// SPDX-License-Identifier: BSD-3-Clause
// requests.cc - the table of commands, and the lanes that execute them.
#include "app/runtime/requests.h"

#include <algorithm>

#include "app/plan/environment_build.h"
#include "app/wire/json_value.h"
#include "app/wire/messages.h"
#include "base/nearest_word.h"
#include "core/engine/thread.h"
#include "core/module/args.h"
#include "core/module/kind.h"
#include "spec/config_json.h"
#include "spec/doors.h"
#include "spec/parts.h"
#include "spec/stages.h"

namespace batchplane::app {
namespace {

enum class Pace : uint8_t { kQuick, kSlow, kTrace };

struct Context {
  const Value& args;
  Runtime& runtime;
  BulkEdits& bulk;
  std::vector<ConfigError>& errors;
  std::map<std::string, std::string>& source_map;
  ControlSocket::ClientId client;
};

struct Command {
  const char* name;
  Pace pace;
  Value (*run)(Context&);
};

PipelineSpec pipeline_of(Context& context) {
  if (!context.args["pipeline"].is_dict()) {
    throw ConfigError("'pipeline' is missing", "pipeline", "canonical JSON of a pipeline");
  }
  PipelineSpec spec = spec_from_value(context.args["pipeline"], context.errors);
  context.source_map = spec.source_map;
  const Kinds kinds = module_kind_facts();
  Mistakes mistakes{context.errors, context.source_map};
  add_stages(spec, kinds, mistakes);
  add_parts(spec, kinds);
  add_doors(spec, kinds);
  return spec;
}

Value run_check(Context& context) {
  const PipelineSpec spec = pipeline_of(context);
  Value plan;
  if (context.errors.empty()) plan = context.runtime.check(spec, context.errors);
  // Mistakes are the requested result: the request itself is good.
  List errors = errors_value(context.errors, spec.source_map);
  context.errors.clear();
  return Dict{
      {"errors", std::move(errors)}, {"warnings", warnings_value(spec)}, {"plan", std::move(plan)}};
}

Value run_apply(Context& context) {
  PipelineSpec spec = pipeline_of(context);
  if (!context.errors.empty()) return {};
  const Value& dry = context.args["dry_run"];
  return context.runtime.apply(std::move(spec), !dry.is_null() && dry.as_bool(), context.errors);
}

Value run_move(Context& context) {
  const Value& parts = context.args["parts"];
  if (!parts.is_list() || parts.as_list().empty()) {
    throw ConfigError("'parts' is missing", "parts", "a list of {module, worker}");
  }
  std::vector<PartMove> moves;
  for (const Value& part : parts.as_list()) {
    if (!part.is_dict()) throw ConfigError("this is no part", "parts", "{module, worker}");
    moves.push_back({text_of(part, "module"), text_of(part, "worker")});
  }
  return context.runtime.move(moves);
}

Value run_module(Context& context) {
  const Value& args = context.args["args"];
  return context.runtime.command(text_of(context.args, "module"), text_of(context.args, "verb"),
                                 args.is_null() ? Value(Dict{}) : args);
}

// Null when there is no period yet: Requests then waits for it.
Value hand_period(const Value& args, Runtime& runtime, ControlSocket::ClientId client) {
  const Value& after = args["after"];
  if (!after.is_null() && !(after.is_int() && after.as_int() >= 0)) {
    throw ConfigError("this is no number of a period", "after", "the last one that was told, or 0");
  }
  return runtime.hand_period(client, after.is_null() ? 0 : static_cast<uint64_t>(after.as_int()));
}

const Command kCommands[] = {
    {"hello", Pace::kQuick, [](Context& c) { return c.runtime.hello(); }},
    {"show", Pace::kQuick,
     [](Context& c) { return c.runtime.show(text_of(c.args, "what"), c.args); }},
    {"set", Pace::kQuick,
     [](Context& c) {
       c.runtime.set(c.args, c.client);
       return Value(Dict{});
     }},
    {"explain", Pace::kQuick,
     [](Context& c) {
       const Value& name = c.args["name"];
       return c.runtime.explain(name.is_null() ? "" : name.as_string());
     }},
    {"period", Pace::kQuick, [](Context& c) { return hand_period(c.args, c.runtime, c.client); }},
    {"decide", Pace::kQuick, [](Context& c) { return c.runtime.decide(c.client, c.args); }},
    {"module", Pace::kSlow, run_module},
    {"bulk", Pace::kSlow, [](Context& c) { return c.bulk.run(c.args, c.runtime); }},
    {"check", Pace::kSlow, run_check},
    {"apply", Pace::kSlow, run_apply},
    {"move", Pace::kSlow, run_move},
    {"save", Pace::kSlow, [](Context& c) { return c.runtime.save(); }},
    {"trace", Pace::kTrace, [](Context& c) { return c.runtime.trace(c.args); }},
};

const Command& find_command(const std::string& name) {
  std::vector<std::string> names{"stop"};
  for (const Command& command : kCommands) {
    if (name == command.name) return command;
    names.emplace_back(command.name);
  }
  const std::string near = nearest_word(name, names);
  throw ConfigError(
      "there is no command '" + name + "'", "cmd",
      near.empty()
          ? "hello, show, set, explain, period, decide, module, bulk, check, apply, move, save, "
            "trace, stop"
          : "did you mean '" + near + "'?");
}

// `tables` requests wait for table edits, so they use the slow lane and do not delay quick requests.
Pace pace_of(const Request& request, const Command& command) {
  const Value& what = request.args["what"];
  const bool is_table = what.is_string() && what.as_string() == "tables";
  return command.pace == Pace::kQuick && is_table ? Pace::kSlow : command.pace;
}

}  // namespace

Request parse_request(const std::string& line, Value& id) {
  const Value given = parse_json(line, "request");
  if (!given.is_dict()) throw ConfigError("the request is no object", "request");
  if (given["id"].is_int() || given["id"].is_string()) id = given["id"];
  const Value& version = given["v"];
  if (!version.is_int() || version.as_int() != kProtocolVersion) {
    throw ConfigError("this version of the protocol is unknown", "v",
                      "the daemon speaks version " + std::to_string(kProtocolVersion));
  }
  for (const auto& [key, value] : given.as_dict()) {
    if (key != "v" && key != "id" && key != "cmd" && key != "args") {
      throw ConfigError("unknown key '" + key + "'", "request", "v, id, cmd, args");
    }
  }
  const Value& args = given["args"];
  if (!args.is_null() && !args.is_dict()) throw ConfigError("'args' is no object", "args");
  return {id, text_of(given, "cmd"), args.is_null() ? Value(Dict{}) : args};
}

std::string good_answer(const Value& id, const Value& result) {
  std::string answer =
      to_json(Dict{{"v", kProtocolVersion}, {"id", id}, {"ok", true}, {"result", result}});
  if (answer.size() <= ControlSocket::kMaxAnswerBytes) return answer;
  return bad_answer(id,
                    {ConfigError("the answer is too long", "", "ask for less: a filter, a limit")});
}

std::string bad_answer(const Value& id, const std::vector<ConfigError>& errors,
                       const std::map<std::string, std::string>& source_map) {
  return to_json(Dict{{"v", kProtocolVersion},
                      {"id", id},
                      {"ok", false},
                      {"errors", errors_value(errors, source_map)}});
}

std::string answer_request(const Request& request, Runtime& runtime, BulkEdits& bulk,
                           ControlSocket::ClientId client) {
  std::vector<ConfigError> errors;
  std::map<std::string, std::string> source_map;
  Value result;
  const std::vector<ConfigError> thrown = errors_of([&] {
    Context context{request.args, runtime, bulk, errors, source_map, client};
    result = find_command(request.cmd).run(context);
  });
  errors.insert(errors.end(), thrown.begin(), thrown.end());
  return errors.empty() ? good_answer(request.id, result)
                        : bad_answer(request.id, errors, source_map);
}

Requests::Requests(Runtime& runtime, Answer answer, Stop stop)
    : runtime_(runtime),
      answer_(std::move(answer)),
      stop_(std::move(stop)),
      trace_lane_(runtime.on_control_core(false)),
      slow_lane_(runtime.on_control_core(false)),
      quick_lane_(runtime.on_control_core(true)) {
  runtime_.on_step([this] { serve_waiting(false); });
}

Requests::~Requests() {
  runtime_.on_step(nullptr);
  serve_waiting(true);
}

void Requests::take(ControlSocket::ClientId client, std::string line) {
  quick_lane_.post([this, client, line = std::move(line)] { route(client, line); });
}

void Requests::route(ControlSocket::ClientId client, const std::string& line) {
  Value id;
  Request request;
  Pace pace = Pace::kQuick;
  bool is_stop = false;
  const std::vector<ConfigError> errors = errors_of([&] {
    request = parse_request(line, id);
    is_stop = request.cmd == "stop";
    if (!is_stop) pace = pace_of(request, find_command(request.cmd));
  });
  if (!errors.empty()) {
    answer_(client, bad_answer(id, errors));
    return;
  }
  if (is_stop) {
    stop_(client, id);
    return;
  }
  if (request.cmd == "period") {
    {
      const std::lock_guard lock(waiting_mutex_);
      waiting_.push_back({client, std::move(request)});
    }
    serve_waiting(false);
    return;
  }
  auto job = [this, client, request = std::move(request)] {
    answer_(client, answer_request(request, runtime_, bulk_, client));
  };
  if (pace == Pace::kQuick) {
    job();
    serve_waiting(false);  // the job may have chosen another controller
  } else {
    (pace == Pace::kSlow ? slow_lane_ : trace_lane_).post(std::move(job));
  }
}

// Answers the clients whose period has ended, or will never come.
void Requests::serve_waiting(bool is_end) {
  const std::lock_guard lock(waiting_mutex_);
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    Value period;
    std::vector<ConfigError> errors = errors_of([&] {
      if (is_end) throw ConfigError("the daemon has stopped");
      period = hand_period(waiting.request.args, runtime_, waiting.client);
    });
    if (errors.empty() && period.is_null()) return false;
    answer_(waiting.client, errors.empty() ? good_answer(waiting.request.id, period)
                                           : bad_answer(waiting.request.id, errors));
    return true;
  });
}

void Requests::forget(ControlSocket::ClientId client) {
  quick_lane_.post([this, client] {
    {
      const std::lock_guard lock(waiting_mutex_);
      std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.client == client; });
    }
    runtime_.client_gone(client);
  });
}

}  // namespace batchplane::app
