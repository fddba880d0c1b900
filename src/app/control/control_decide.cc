// SPDX-License-Identifier: BSD-3-Clause
// control_decide.cc - the control loop's part for a controller in another program: hands out periods and
// takes decisions at any time; settings without a decision stay as they are.
#include <algorithm>

#include "app/control/control_loop.h"
#include "base/clock.h"
#include "slo/papers/controllers.h"

namespace batchplane::app {
namespace {

constexpr const char* kKept = ": the last good decision stays in force";

uint64_t number_of(const Value& args) {
  const Value& number = args["number"];
  if (number.is_int() && number.as_int() > 0) return static_cast<uint64_t>(number.as_int());
  throw ConfigError("the number of the period is missing", "number", "as `period` told it");
}

}  // namespace

// A controller that leaves triggers alone and only limits ages, so that SLOs do not depend on the program's
// next answer.
std::unique_ptr<slo::Controller> ControlLoop::make_guard() const {
  return slo::make_full(choice_.label, model_, settings_,
                        {.has_age_limits = true, .keeps_triggers = true});
}

// Age limits that the program has chosen are left to it.
void ControlLoop::keep_own_ages(exec::Decision& decision) const {
  std::erase_if(decision.changes, [this](const exec::BufferChange& change) {
    return own_ages_.contains(change.module);
  });
}

// Throws ConfigError while another connection decides.
void ControlLoop::check_seat(uint64_t client) const {
  if (!is_remote() || seat_.client == 0 || seat_.client == client) return;
  throw ConfigError("another program decides already: " + choice_.label, "controller",
                    "stop that one first");
}

void ControlLoop::take_seat(uint64_t client) {
  if (!is_remote()) {
    throw ConfigError("the controller is " + choice_.name + ": no program decides", "controller",
                      "batchplane control FILE.py");
  }
  check_seat(client);
  seat_.client = client;
}

Value ControlLoop::hand_period(uint64_t client, uint64_t after) {
  take_seat(client);
  seat_.is_waiting = log_.steps == 0 || number_ <= after;
  if (seat_.is_waiting) return {};
  note_activity();
  // A repeated request for the same period does not restart its time.
  if (seat_.handed < number_) seat_.handed_ns = seat_.active_ns;
  seat_.handed = number_;
  Dict told = period_value(period_).as_dict();
  told["number"] = number_;
  told["graph"] = graph_number_;
  return told;
}

Value ControlLoop::decide(uint64_t client, const Value& args) {
  take_seat(client);
  const uint64_t number = number_of(args);
  if (number > seat_.handed) {
    throw ConfigError("period " + std::to_string(number) + " was not handed out", "number");
  }
  note_activity();
  if (args["fault"].is_string()) {
    ++log_.failed_steps;
    log_.note_event(period_.now_ns, args["fault"].as_string() + kKept, number);
    return Dict{{"changes", 0}};
  }
  try {
    if (number < first_of_graph_) {
      throw ConfigError("the graph has changed since period " + std::to_string(number), "number",
                        "ask for the model again");
    }
    exec::Decision decision;
    decision.changes = changes_from(args["changes"], model_);
    decision.credits = credits_from(args["credits"], model_);
    decision.polls = polls_from(args["polls"], model_);
    return put_into_force(decision);
  } catch (const ConfigError& error) {
    ++log_.failed_steps;
    log_.note_event(period_.now_ns, error.where() + ": " + error.what() + kKept, number);
    throw;
  }
}

// All of it has been checked against the model, so the engine refuses nothing.
Value ControlLoop::put_into_force(const exec::Decision& decision) {
  const std::vector<exec::BufferChange>& changes = decision.changes;
  engine_.change_buffers(changes);
  engine_.change_credits(decision.credits);
  change_polls(decision.polls);
  log_.controller_times.note(seat_.active_ns - seat_.handed_ns);
  for (const exec::BufferChange& change : changes) {
    touched_.insert(model_.modules[change.module].name);
    if (change.age_limit_ns != exec::kKeepAge) own_ages_.insert(change.module);
  }
  log_.note_decision(period_.now_ns, model_, period_, decision);
  // The next decision may come before the next period.
  for (const exec::CreditChange& change : decision.credits) {
    period_.inputs[exec::input_of(model_, change.module)].credit_pkts = change.credit_pkts;
  }
  for (const exec::PollChange& change : decision.polls) {
    period_.tasks[change.task].poll_pkts = change.poll_pkts;
  }
  decision_.changes.insert(decision_.changes.end(), changes.begin(), changes.end());
  return Dict{{"changes", changes.size()}};
}

void ControlLoop::client_gone(uint64_t client) {
  if (!is_remote() || seat_.client != client) return;
  const bool has_decided = seat_.handed != 0;
  seat_ = {};
  if (!has_decided) return;
  log_.note_event(period_.now_ns, choice_.label + " has gone" + kKept, number_);
}

void ControlLoop::note_activity() {
  seat_.active_ns = TscClock::instance().now_ns();
  seat_.is_told = false;
}

// Logs once that the program neither waits for a period nor answers one.
void ControlLoop::watch_program(uint64_t now_ns) {
  if (!is_remote() || seat_.client == 0 || seat_.is_waiting || seat_.is_told) return;
  if (now_ns - seat_.active_ns < choice_.answer_limit_ns) return;
  seat_.is_told = true;
  ++log_.failed_steps;
  log_.note_event(period_.now_ns,
                  choice_.label + " has not answered for " +
                      std::to_string(choice_.answer_limit_ns / 1'000'000) + " ms" + kKept,
                  seat_.handed);
}

}  // namespace batchplane::app
