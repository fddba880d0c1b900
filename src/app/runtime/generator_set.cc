// SPDX-License-Identifier: BSD-3-Clause
// generator_set.cc - makes generators, runs their threads, changes them live.
#include "app/runtime/generator_set.h"

#include <algorithm>

#include "base/nearest_word.h"
#include "base/pin_thread.h"
#include "core/module/args.h"

namespace batchplane::app {
namespace {

bool is_same(const GeneratorSpec& a, const GeneratorSpec& b) {
  return a.name == b.name && a.port == b.port && a.core == b.core && a.params == b.params;
}

std::string where_of(const std::string& name) { return "generators." + name; }

std::vector<double> weights_of(const Value& value) {
  std::vector<double> weights;
  for (const Value& weight : value.as_list()) weights.push_back(weight.as_double());
  return weights;
}

}  // namespace

GeneratorSet::~GeneratorSet() {
  stop();
  for (const auto& entry : entries_) entry->port->release();
}

std::unique_ptr<GeneratorSet::Entry> GeneratorSet::make(const GeneratorSpec& spec,
                                                        const Environment& env, PacketPool& pool) {
  auto entry = std::make_unique<Entry>();
  entry->spec = spec;
  entry->port = std::dynamic_pointer_cast<RingPort>(env.port(spec.port));
  if (entry->port == nullptr) {
    throw ConfigError("port '" + spec.port + "' cannot be fed by a generator", where_of(spec.name),
                      "use a port of kind ring");
  }
  std::vector<ConfigError> errors;
  Args args(traffic::generator_params(), spec.params, where_of(spec.name), errors);
  if (!errors.empty()) throw errors.front();
  args.set_name(spec.name);
  entry->generator = std::make_unique<traffic::Generator>(args, entry->port->ring(), pool,
                                                          entry->port->producer_counts());
  entry->port->claim(spec.name);
  return entry;
}

void GeneratorSet::add(const std::vector<GeneratorSpec>& specs, const Environment& env,
                       PacketPool& pool) {
  std::vector<std::unique_ptr<Entry>> made;
  try {
    for (const GeneratorSpec& spec : specs) {
      const bool runs = std::ranges::any_of(
          entries_, [&](const auto& entry) { return entry->spec.name == spec.name; });
      if (!runs) made.push_back(make(spec, env, pool));
    }
  } catch (...) {
    for (const auto& entry : made) entry->port->release();
    throw;
  }
  for (auto& entry : made) {
    start(*entry);
    entries_.push_back(std::move(entry));
  }
}

void GeneratorSet::start(Entry& entry) {
  const int core = entry.spec.core >= 0 ? entry.spec.core : default_core_;
  entry.thread = std::thread([&entry, core] {
    pin_this_thread(core);
    entry.generator->run(entry.must_stop);
  });
}

void GeneratorSet::end(Entry& entry) {
  entry.must_stop.store(true, std::memory_order_release);
  if (entry.thread.joinable()) entry.thread.join();
}

void GeneratorSet::keep_only(const std::vector<GeneratorSpec>& specs, const Environment& env) {
  std::erase_if(entries_, [&](const std::unique_ptr<Entry>& entry) {
    const auto port = env.ports.find(entry->spec.port);
    const bool is_kept =
        port != env.ports.end() && port->second == entry->port &&
        std::ranges::any_of(specs, [&](const GeneratorSpec& s) { return is_same(s, entry->spec); });
    if (is_kept) return false;
    end(*entry);
    entry->port->release();
    return true;
  });
}

void GeneratorSet::stop() {
  for (const auto& entry : entries_) entry->must_stop.store(true, std::memory_order_release);
  for (const auto& entry : entries_) end(*entry);
}

GeneratorSet::Entry& GeneratorSet::at(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) {
    if (entry->spec.name == name) return *entry;
    names.push_back(entry->spec.name);
  }
  const std::string near = nearest_word(name, names);
  throw ConfigError("no generator '" + name + "'", "",
                    near.empty() ? "show generators lists them" : "did you mean '" + near + "'?");
}

void GeneratorSet::check(const std::string& name, const Value& fields) const {
  const Entry& entry = at(name);
  const auto positive = [](double number) {
    if (!(number >= 0 && number <= 1e12)) {
      throw ConfigError("a rate is out of range", "rate_pps", "0 to 1e12");
    }
  };
  if (fields.has("rate_pps")) positive(fields["rate_pps"].as_double());
  if (fields.has("flow")) {
    std::vector<std::string> flows;
    for (const auto& flow : entry.generator->flow_stats()) flows.push_back(flow.name);
    const std::string& wanted = fields["flow"].as_string();
    if (std::ranges::find(flows, wanted) == flows.end()) {
      const std::string near = nearest_word(wanted, flows);
      throw ConfigError("generator '" + name + "' has no flow '" + wanted + "'", "flow",
                        near.empty() ? "" : "did you mean '" + near + "'?");
    }
  }
  if (fields.has("weights")) {
    double sum = 0;
    for (const double weight : weights_of(fields["weights"])) {
      if (!(weight >= 0)) throw ConfigError("a weight is negative", "weights");
      sum += weight;
    }
    if (!(sum > 0)) throw ConfigError("all weights are 0", "weights", "give one a positive weight");
  }
  for (const char* flag : {"is_on", "is_saturating"}) {
    if (fields.has(flag)) (void)fields[flag].as_bool();
  }
}

void GeneratorSet::set(const std::string& name, const Value& fields) {
  check(name, fields);
  traffic::Generator& generator = *at(name).generator;
  if (fields.has("weights")) generator.set_weights(weights_of(fields["weights"]));
  if (fields.has("rate_pps")) {
    const double rate_pps = fields["rate_pps"].as_double();
    if (fields.has("flow")) {
      generator.set_flow_rate(fields["flow"].as_string(), rate_pps);
    } else {
      generator.set_rate(rate_pps);
    }
  }
  if (fields.has("is_saturating")) generator.set_saturating(fields["is_saturating"].as_bool());
  if (fields.has("is_on")) generator.set_on(fields["is_on"].as_bool());
}

ControlTap::Gaps GeneratorSet::held_up() const {
  ControlTap::Gaps sum;
  for (const auto& entry : entries_) {
    sum.ns += entry->generator->held_up_ns();
    sum.count += entry->generator->held_ups();
  }
  return sum;
}

Value GeneratorSet::show() const {
  List all;
  for (const auto& entry : entries_) {
    const traffic::GeneratorStats stats = entry->generator->stats();
    List flows;
    for (const auto& flow : entry->generator->flow_stats()) {
      flows.emplace_back(Dict{{"name", flow.name},
                              {"sent_pkts", flow.sent_pkts},
                              {"sent_bytes", flow.sent_bytes},
                              {"refused_pkts", flow.refused_pkts}});
    }
    all.emplace_back(Dict{{"name", entry->spec.name},
                          {"port", entry->spec.port},
                          {"sent_pkts", stats.sent_pkts},
                          {"refused_pkts", stats.refused_pkts},
                          {"starved_polls", stats.starved_polls},
                          {"held_ups", stats.held_ups},
                          {"held_up_ns", stats.held_up_ns},
                          {"rate_pps", stats.is_saturating ? Value() : Value(stats.rate_pps)},
                          {"is_on", stats.is_on},
                          {"is_saturating", stats.is_saturating},
                          {"late_ns", stats.late_ns},
                          {"flows", std::move(flows)}});
  }
  return all;
}

std::vector<GeneratorSpec> GeneratorSet::saved() const {
  std::vector<GeneratorSpec> specs;
  for (const auto& entry : entries_) {
    GeneratorSpec spec = entry->spec;
    for (auto& [key, value] : entry->generator->saved_params()) spec.params[key] = value;
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace batchplane::app
