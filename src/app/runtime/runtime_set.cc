// SPDX-License-Identifier: BSD-3-Clause
// runtime_set.cc - live changes: all of a request in one step, or none.
#include <algorithm>

#include "app/runtime/runtime.h"
#include "base/cost_law_value.h"
#include "base/nearest_word.h"
#include "core/module/args.h"
#include "spec/field_reader.h"

namespace batchplane::app {
namespace {

const std::vector<std::string> kTargets{"trigger",    "age_limit", "weight",    "poll_pkts",
                                        "idle",       "slo",       "generator", "port",
                                        "controller", "placement", "many"};

struct SloEdit {
  std::string flow;
  uint64_t delay_slo_ns;
};
struct NamedEdit {
  std::string name;
  Value fields;
};

// A parsed request, before anything is done.
struct Edits {
  std::vector<Engine::TriggerEdit> triggers;
  std::vector<Engine::AgeEdit> ages;
  std::vector<Engine::WeightEdit> weights;
  std::vector<Engine::PollEdit> polls;
  std::vector<bool> idle_holds;
  std::vector<SloEdit> slos;
  std::vector<NamedEdit> generators;
  std::vector<NamedEdit> ports;
  std::vector<ControlChoice> controllers;
  std::vector<Value> placements;
};

void read_generator(FieldReader& fields, const Value& args, Edits& edits) {
  edits.generators.push_back({fields.required_string("name"), args});
  for (const char* key : {"rate_pps", "flow", "weights", "is_on", "is_saturating"}) fields.any(key);
}

// A law, or the name of the module whose law it shares.
std::map<std::string, CostLaw> read_costs(const Value& costs) {
  std::map<std::string, CostLaw> laws;
  for (const auto& [module, given] : costs.as_dict()) {
    if (!given.is_string()) laws[module] = cost_law_from(given, "costs." + module);
  }
  for (const auto& [module, given] : costs.as_dict()) {
    if (!given.is_string()) continue;
    const auto shared = laws.find(given.as_string());
    if (shared == laws.end()) {
      throw ConfigError("no cost is given for '" + given.as_string() + "'", "costs." + module,
                        "name a module that has one here");
    }
    laws[module] = shared->second;
  }
  return laws;
}

ControlChoice read_choice(FieldReader& fields) {
  ControlChoice choice;
  choice.name = fields.required_string("name");
  choice.period_ns = fields.integer("period_ns", choice.period_ns, limits::kPeriodNs);
  choice.settings = fields.any("settings");
  choice.costs_origin = fields.string("costs_origin");
  choice.costs_file = fields.string("costs_file");
  choice.label = fields.string("label");
  choice.answer_limit_ns = fields.integer("answer_limit_ns", choice.answer_limit_ns,
                                          limits::kPeriodNs.least, limits::kAgeLimitNs.most);
  if (choice.name == kRemoteController && choice.label.empty()) choice.label = choice.name;
  if (const Value& costs = fields.any("costs"); costs.is_dict()) choice.costs = read_costs(costs);
  if (fields.dict("hop_costs") != nullptr) {
    HopCosts& hop = choice.hop.emplace(slo::kUsualHop);
    read_cost_fields(fields.any("hop_costs"), "hop_costs", fields_of(hop));
  }
  return choice;
}

void read_edit(const Value& args, const std::string& key, Mistakes& mistakes, Edits& edits) {
  FieldReader fields(args, key, mistakes);
  const std::string what = fields.required_string("what");
  if (what == "trigger") {
    const std::string module = fields.required_string("module");
    if (!fields.has("trigger_pkts")) fields.mistake("trigger_pkts", "it is missing");
    const uint32_t pkts = fields.integer32("trigger_pkts", 0, limits::kTriggerPkts);
    edits.triggers.push_back({module, pkts});
  } else if (what == "age_limit") {
    const std::string module = fields.required_string("module");
    if (!fields.has("age_limit_ns"))
      fields.mistake("age_limit_ns", "it is missing", "null: the stranding limit");
    edits.ages.push_back({module, fields.integer("age_limit_ns", 0, limits::kAgeLimitNs)});
  } else if (what == "weight") {
    const std::string module = fields.required_string("module");
    if (!fields.has("weight")) fields.mistake("weight", "it is missing");
    edits.weights.push_back({module, fields.integer32("weight", 1, limits::kWeight)});
  } else if (what == "poll_pkts") {
    const std::string module = fields.required_string("module");
    if (!fields.has("poll_pkts")) fields.mistake("poll_pkts", "it is missing");
    edits.polls.push_back({module, fields.integer32("poll_pkts", 1, limits::kPollPkts)});
  } else if (what == "idle") {
    const std::string mode = fields.required_string("mode");
    if (mode != "release" && mode != "hold")
      fields.mistake("mode", "'" + mode + "' is no idle mode", "release or hold");
    edits.idle_holds.push_back(mode == "hold");
  } else if (what == "slo") {
    const std::string flow = fields.required_string("flow");
    if (!fields.has("delay_slo_ns")) fields.mistake("delay_slo_ns", "it is missing", "0: none");
    edits.slos.push_back({flow, fields.integer("delay_slo_ns", 0, limits::kDelaySloNs)});
  } else if (what == "controller") {
    edits.controllers.push_back(read_choice(fields));
  } else if (what == "generator") {
    read_generator(fields, args, edits);
  } else if (what == "placement") {
    edits.placements.push_back(args);
    return;  // placement checks the other fields
  } else if (what == "port") {
    edits.ports.push_back({fields.required_string("name"), args});
    return;  // the port checks the other fields
  } else {
    const std::string near = nearest_word(what, kTargets);
    fields.mistake("what", "there is nothing called '" + what + "' to set",
                   near.empty()
                       ? "trigger, age_limit, weight, poll_pkts, idle, slo, generator, port, "
                         "controller, placement, many"
                       : "did you mean '" + near + "'?");
    return;
  }
  fields.finish();
}

Edits read_edits(const Value& args) {
  Edits edits;
  std::vector<ConfigError> errors;
  const SourceMap nowhere;
  Mistakes mistakes{errors, nowhere};
  if (args["what"].is_string() && args["what"].as_string() == "many") {
    FieldReader fields(args, "", mistakes);
    fields.any("what");
    const List* sets = fields.list("sets");
    if (sets == nullptr) fields.mistake("sets", "a list of changes is missing");
    for (size_t i = 0; sets != nullptr && i < sets->size(); ++i) {
      read_edit((*sets)[i], "sets[" + std::to_string(i) + "]", mistakes, edits);
    }
    fields.finish();
  } else {
    read_edit(args, "", mistakes, edits);
  }
  if (!errors.empty()) throw ConfigErrors(std::move(errors));
  return edits;
}

void check_flows(const PipelineSpec& spec, const std::vector<SloEdit>& slos) {
  std::vector<std::string> flows;
  for (const FlowSpec& flow : spec.flows) flows.push_back(flow.name);
  for (const SloEdit& edit : slos) {
    if (std::ranges::find(flows, edit.flow) != flows.end()) continue;
    const std::string near = nearest_word(edit.flow, flows);
    throw ConfigError("no flow '" + edit.flow + "'", "flow",
                      near.empty() ? "show flows lists them" : "did you mean '" + near + "'?");
  }
}

}  // namespace

ControlChoice choice_from(const Value& controller) {
  std::vector<ConfigError> errors;
  const SourceMap nowhere;
  Mistakes mistakes{errors, nowhere};
  FieldReader fields(controller, "controller", mistakes);
  ControlChoice choice = read_choice(fields);
  fields.finish();
  if (!errors.empty()) throw ConfigErrors(std::move(errors));
  return choice;
}

Value saved_choice(const ControlChoice& choice) {
  if (choice.name == kNoController || choice.name == kRemoteController) return {};
  Dict saved{{"name", choice.name}, {"period_ns", choice.period_ns}};
  if (choice.settings.is_dict()) saved["settings"] = choice.settings;
  if (!choice.costs_file.empty()) saved["costs_file"] = choice.costs_file;
  return saved;
}

void Runtime::choose(ControlChoice choice) {
  control_.choose(std::move(choice));
  if (control_thread_ == nullptr) return;
  control_thread_->set_period(control_.is_on() ? control_.choice().period_ns : 0);
  control_thread_->kick();
}

void Runtime::begin_control(const Value& controller) {
  if (controller.is_null()) return;
  const std::lock_guard lock(locks_.engine);
  choose(choice_from(controller));
}

void Runtime::set(const Value& args, uint64_t client) {
  Edits edits = read_edits(args);
  for (ControlChoice& choice : edits.controllers) choice.client = client;
  const std::lock_guard lock(locks_.engine);
  Engine& engine = *parts_.engine;
  check_flows(engine.graph().spec, edits.slos);
  for (const NamedEdit& edit : edits.generators) parts_.generators->check(edit.name, edit.fields);
  std::vector<std::shared_ptr<Port>> ports;
  for (const NamedEdit& edit : edits.ports) ports.push_back(engine.graph().env->port(edit.name));
  if (ports.size() > 1 || (!ports.empty() && edits.triggers.size() + edits.ages.size() != 0)) {
    throw ConfigError("a port cannot be changed in one step with other things", "sets",
                      "set it by itself");
  }
  const size_t n_others = edits.triggers.size() + edits.ages.size() + edits.ports.size() +
                          edits.controllers.size() + edits.generators.size();
  if (edits.placements.size() > 1 || (!edits.placements.empty() && n_others != 0)) {
    throw ConfigError("placement cannot be changed in one step with other things", "sets",
                      "set it by itself");
  }
  if (edits.controllers.size() > 1) {
    throw ConfigError("there is one controller at a time", "sets", "choose one");
  }
  for (const ControlChoice& choice : edits.controllers) control_.check(choice);
  // Only a port's own command can still fail, and it comes alone; set_buffers checks before it acts.
  for (size_t i = 0; i < ports.size(); ++i) ports[i]->command("set", edits.ports[i].fields);
  for (const Value& edit : edits.placements) placement_.edit(edit);
  engine.check_weights(edits.weights);
  const std::vector<exec::PollChange> polls = engine.poll_changes(edits.polls);
  engine.set_buffers(edits.triggers, edits.ages);
  engine.set_weights(edits.weights);
  engine.change_polls(polls);
  for (const bool is_hold : edits.idle_holds) engine.set_idle_hold(is_hold);
  for (const SloEdit& edit : edits.slos) {
    engine.set_slo(edit.flow, edit.delay_slo_ns);
    control_.slo_changed(edit.flow);
  }
  for (ControlChoice& choice : edits.controllers) choose(std::move(choice));
  for (const NamedEdit& edit : edits.generators) parts_.generators->set(edit.name, edit.fields);
  parts_.cache.forget();
  // A changed SLO takes effect without waiting for the end of the period.
  if (control_thread_ != nullptr && !edits.slos.empty()) control_thread_->kick();
}

}  // namespace batchplane::app
