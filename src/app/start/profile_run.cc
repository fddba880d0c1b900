// SPDX-License-Identifier: BSD-3-Clause
#include "app/start/profile_run.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <optional>
#include <set>

#include "app/plan/environment_build.h"
#include "app/plan/memory_plan.h"
#include "app/wire/json_value.h"
#include "base/clock.h"
#include "base/cost_law_value.h"
#include "base/engine_costs.h"
#include "base/nearest_word.h"
#include "base/pin_thread.h"
#include "core/engine/thread.h"
#include "profile/whole.h"
#include "profile/whole_counts.h"

namespace batchplane::app {
namespace {

constexpr double kMaxMsPerModule = 60'000;
constexpr double kLoopMs = 1'500;
constexpr double kMinLoopMs = 100;
constexpr double kWholeShare = 12;       // the same for the whole pipeline
constexpr double kLoopShare = 5;         // of the time per module
constexpr uint32_t kProfilePkts = 8192;  // packets under test, in addition to the pipeline's needs
constexpr uint64_t kProfileMemoryMb = 128;

std::vector<std::string> group_from(const Value& value, const PipelineSpec& spec,
                                    const std::string& where) {
  std::vector<std::string> names = modules_from(value, spec, where);
  if (names.empty()) throw ConfigError("a group is empty", where, "name a module");
  return names;
}

struct Measured {
  std::vector<profile::ModuleProfile> modules;
  std::optional<EngineCosts> loop;
  profile::Doubts doubts;  // of the loop
  std::optional<profile::WholeCheck> check;
};

Value list_of(double low, double high) { return List{low, high}; }

Value strings(const std::vector<std::string>& all) {
  List list;
  for (const std::string& one : all) list.emplace_back(one);
  return list;
}

Value loop_value(EngineCosts costs) {
  Dict loop;
  for (const auto& [key, ns] : fields_of(costs)) loop[key] = *ns;
  return loop;
}

std::string now_text() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

void say_progress(uint32_t pass, uint32_t module, uint32_t n_modules, uint32_t n_passes) {
  std::fprintf(stderr, "progress %u/%u\n", pass * n_modules + module, n_passes * n_modules);
}

// Lists the pipeline's own kinds, not those that stood in for them.
Value modules_value(const std::vector<profile::ModuleProfile>& profiles, const PipelineSpec& spec,
                    const std::map<std::string, std::string>& notes) {
  List modules;
  for (const profile::ModuleProfile& p : profiles) {
    const auto note = notes.find(p.name);
    modules.push_back(
        profile_value(p, std::ranges::find(spec.modules, p.name, &ModuleSpec::name)->kind,
                      note == notes.end() ? "" : note->second, spec.engine.batch_pkts));
  }
  return modules;
}

// Of the modules, then of the engine and the whole pipeline.
Value doubts_value(const Measured& measured) {
  List doubts;
  for (const profile::ModuleProfile& p : measured.modules) {
    for (const std::string& doubt : p.doubts) doubts.emplace_back(doubt);
  }
  for (const std::string& doubt : measured.doubts) doubts.emplace_back(doubt);
  return doubts;
}

Value check_value(const profile::WholeCheck& check) {
  List points;
  for (const profile::WholePoint& point : check.points) {
    double alone_ns = 0;
    for (const CostLaw::Line& part : point.parts) alone_ns += part.ns(1);
    points.emplace_back(Dict{{"from_other_core", point.is_far},
                             {"trigger_pkts", point.trigger_pkts},
                             {"measured_ns_per_pkt", point.measured_ns_per_pkt},
                             {"alone_ns_per_pkt", alone_ns},
                             {"law_ns_per_pkt", check.at(point)},
                             {"pkts_per_loop", point.pkts_per_loop}});
  }
  const profile::Factors& before = check.factors[profile::kBefore];
  const profile::Factors& behind = check.factors[profile::kBehind];
  return Dict{{"batch_factor", before.batch},        {"pkt_factor", before.pkt},
              {"behind_batch_factor", behind.batch}, {"behind_pkt_factor", behind.pkt},
              {"n_rejected", check.n_rejected},      {"points", std::move(points)}};
}

void apply_factors(const profile::Factors& factors, profile::ModuleProfile& p) {
  p.law = p.law.scaled(factors.batch, factors.pkt);
  for (double* ns : {&p.per_batch_ns.low, &p.per_batch_ns.high}) *ns *= factors.batch;
  for (double* ns : {&p.per_pkt_ns.low, &p.per_pkt_ns.high}) *ns *= factors.pkt;
}

// Scales costs to those measured together with the other modules.
void apply_check(const profile::WholeCheck& check, const PipelineSpec& spec,
                 std::vector<profile::ModuleProfile>& modules, EngineCosts& loop) {
  const std::set<std::string> names = profile::behind_splitters(spec);
  const profile::Factors& before = check.factors[profile::kBefore];
  const profile::Factors& behind = names.empty() ? before : check.factors[profile::kBehind];
  for (profile::ModuleProfile& p : modules) {
    const bool is_behind = !p.members.empty() && names.contains(p.members.front());
    apply_factors(is_behind ? behind : before, p);
  }
  for (double* ns :
       {&loop.poll_per_batch_ns, &loop.scatter_per_branch_ns, &loop.ring_take_per_batch_ns}) {
    *ns *= before.batch;
  }
  const double booking_ns = loop.egress_per_pkt_ns;
  loop.poll_per_pkt_ns = before.pkt * (loop.poll_per_pkt_ns - booking_ns) + behind.pkt * booking_ns;
  for (double* ns : {&loop.scatter_per_pkt_ns, &loop.ring_take_per_pkt_ns}) *ns *= before.pkt;
  loop.firing_ns *= behind.batch;
  for (double* ns : {&loop.buffered_per_pkt_ns, &loop.egress_per_pkt_ns}) *ns *= behind.pkt;
  loop.far = check.far;
  loop.sampled_per_batch_ns = check.sampled_per_batch_ns;
  loop.generator = check.generator;
}

// Measures modules, engine and whole pipeline in turn, so that a slow phase of the machine affects all alike.
Measured measure(Graph& graph, PacketPool& pool, PacketPool& far_pool,
                 const ProfileRequest& request, int generator_core) {
  profile::Options options = request.options;
  const uint32_t passes = options.passes;
  profile::WholeMeter whole(graph, pool, far_pool, generator_core);
  if (whole.has_traffic()) options.stir = [&whole] { whole.stir(); };
  profile::ModuleMeter meter(graph, pool, options);
  std::unique_ptr<profile::LoopMeter> loop;
  if (request.has_loop) {
    const double ms = std::clamp(options.ms_per_module * kLoopShare, kMinLoopMs, kLoopMs);
    loop = std::make_unique<profile::LoopMeter>(pool, graph.spec.engine.batch_pkts, passes,
                                                ms / passes, generator_core);
  }
  for (uint32_t pass = 0; pass < passes; ++pass) {
    meter.pass([&](uint32_t module) { say_progress(pass, module, meter.n_modules(), passes); });
    if (loop == nullptr) continue;
    loop->pass();
    if (!whole.has_traffic()) continue;
    whole.pass(kWholeShare * options.ms_per_module / passes);
  }
  Measured measured{.modules = meter.results()};
  if (loop == nullptr) return measured;
  measured.loop = loop->result(measured.doubts);
  measured.check = whole.result(measured.modules, *measured.loop);
  if (!measured.check) return measured;
  apply_check(*measured.check, graph.spec, measured.modules, *measured.loop);
  const profile::Doubts& more = measured.check->doubts;
  measured.doubts.insert(measured.doubts.end(), more.begin(), more.end());
  profile::raise_to_parts(*measured.loop, measured.doubts);
  return measured;
}

}  // namespace

std::vector<std::string> modules_from(const Value& value, const PipelineSpec& spec,
                                      const std::string& where) {
  std::vector<std::string> names;
  std::vector<std::string> known;
  for (const ModuleSpec& module : spec.modules) known.push_back(module.name);
  for (const Value& name : value.as_list()) {
    if (std::ranges::find(known, name.as_string()) == known.end()) {
      const std::string near = nearest_word(name.as_string(), known);
      throw ConfigError("there is no module '" + name.as_string() + "'", where,
                        near.empty() ? "" : "did you mean '" + near + "'?");
    }
    names.push_back(name.as_string());
  }
  return names;
}

Value profile_value(const profile::ModuleProfile& p, const std::string& kind,
                    const std::string& note, uint32_t batch_limit_pkts) {
  Dict value{{"name", p.name},
             {"kind", kind},
             {"members", strings(p.members)},
             {"cost_per_batch_95_ns", list_of(p.per_batch_ns.low, p.per_batch_ns.high)},
             {"cost_per_pkt_95_ns", list_of(p.per_pkt_ns.low, p.per_pkt_ns.high)},
             {"r_squared", p.fit.r_squared},
             {"small_error_ratio", p.fit.small_error_ratio},
             {"left_out_error_ratio", p.fit.left_out_error_ratio},
             {"batchiness", CostLaw(p.law.line()).batchiness(batch_limit_pkts)},
             {"measured_up_to_pkts", p.max_measured_pkts},
             {"rounds", p.rounds}};
  value.merge(cost_law_value(p.law));
  if (!p.reason.empty()) value["reason"] = p.reason;
  const std::string both = p.note.empty() || note.empty() ? p.note + note : p.note + "; " + note;
  if (!both.empty()) value["note"] = both;
  return value;
}

ProfileRequest profile_request_from(const Value& value, const PipelineSpec& spec) {
  ProfileRequest request;
  for (const auto& [key, given] : value.as_dict()) {
    if (key == "groups") {
      size_t i = 0;
      for (const Value& group : given.as_list()) {
        request.options.groups.push_back(
            group_from(group, spec, "groups[" + std::to_string(i++) + "]"));
      }
    } else if (key == "ms_per_module") {
      request.options.ms_per_module = given.as_double();
      if (!(request.options.ms_per_module > 0 &&
            request.options.ms_per_module <= kMaxMsPerModule)) {
        throw ConfigError("a time is out of range", key, "1 to 60000 ms");
      }
    } else if (key == "passes") {
      if (given.as_int() < 1 || given.as_int() > 100) {
        throw ConfigError("out of range", key, "1 to 100");
      }
      request.options.passes = static_cast<uint32_t>(given.as_int());
    } else if (key == "loop") {
      request.has_loop = given.as_bool();
    } else if (key == "feeders") {
      for (const auto& [port, feeder] : given.as_dict()) {
        request.options.feeders[port] = feeder.as_string();
      }
    } else {
      throw ConfigError("unknown key '" + key + "'", "profile request",
                        "groups, ms_per_module, passes, loop, feeders");
    }
  }
  return request;
}

Value run_profile(Startup& startup, const std::string& request_path) {
  startup.extra_memory_mb = kProfileMemoryMb;
  startup.leaves_out_devices = true;
  plan(startup);
  ProfileRequest request;
  if (!request_path.empty()) {
    request = profile_request_from(parse_json(read_file(request_path), request_path), startup.spec);
  }
  start_packets(startup);
  std::map<std::string, std::string> notes;
  const bool has_real_ports = !request.options.feeders.empty();
  const PipelineSpec spec = profile::measurable(startup.spec, notes, has_real_ports);
  std::vector<ConfigError> errors;
  Quiescence quiescence;
  std::unique_ptr<PacketPool> far_pool;
  std::unique_ptr<PacketPool> pool;  // before the graph, whose rings give packets back at the end
  auto env = build_environment(spec, PortsAre::kReal, {}, errors);
  if (!errors.empty()) throw ConfigErrors(std::move(errors));
  env->quiescence = &quiescence;
  env->repeats_packets = true;
  const auto graph = build_graph(spec, std::move(env));
  pool = std::make_unique<PacketPool>("profile", pool_pkts_for(*graph) + kProfilePkts,
                                      data_bytes_needed(spec, *graph->env));
  far_pool = std::make_unique<PacketPool>("profile_far", pool_pkts_for(*graph),
                                          data_bytes_needed(spec, *graph->env));
  for (const auto& [name, port] : graph->env->ports) {
    if (has_real_ports) port->start(*pool);
  }
  const int core = spec.workers.front().core;
  pin_this_thread(core);
  [[maybe_unused]] const PacketThread registered;
  const Measured measured = measure(*graph, *pool, *far_pool, request, startup.cores.control_core);
  Dict result{{"version", kProfileVersion},
              {"label", "measured"},
              {"pipeline", spec.name},
              {"cpu", cpu_model()},
              {"core", core},
              {"date", now_text()},
              {"daemon", kDaemonVersion},
              {"cycles_per_ns", TscClock::instance().cycles_per_ns()},
              {"batch_pkts", spec.engine.batch_pkts},
              {"modules", modules_value(measured.modules, startup.spec, notes)},
              {"doubts", doubts_value(measured)}};
  if (measured.loop) result["loop"] = loop_value(*measured.loop);
  if (measured.check) result["check"] = check_value(*measured.check);
  return result;
}

}  // namespace batchplane::app
