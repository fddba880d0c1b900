// SPDX-License-Identifier: BSD-3-Clause
// spec_stages.cc - modules with a device: the pipeline's settings for their batches, and the times
// that the simulation gives these batches.
#include <algorithm>

#include "base/batch_law_value.h"
#include "sim/spec_fields.h"
#include "sim/spec_read.h"
#include "spec/stages.h"

namespace batchplane::sim {
namespace {

constexpr double kMostJobPkts = 16'384;
constexpr double kMostDepth = 64;
constexpr int64_t kStageQueuePkts = 4096;

std::vector<std::string> names_in(const Value& on, const std::string& where) {
  std::vector<std::string> names;
  if (on.is_string()) names.push_back(on.as_string());
  if (on.is_list()) {
    for (const Value& name : on.as_list()) names.push_back(name.as_string());
  }
  if (!names.empty() && names.size() <= placement::kMaxPlaces) return names;
  throw ConfigError("'on' has " + std::to_string(names.size()) + " devices", where,
                    "give 1 to " + std::to_string(placement::kMaxPlaces));
}

// As in the engine at start: all on the first place, unless shares are given.
void read_shares(const Value& shares, const std::string& where, StageSpec& stage) {
  if (shares.is_null()) {
    stage.places.front().share = 1;
    return;
  }
  std::vector<std::string> names;
  for (const StageSpec::Place& place : stage.places) names.push_back(place.device);
  refuse_other_keys(shares, names, "place of this module", where);
  double sum = 0;
  for (StageSpec::Place& place : stage.places) {
    place.share = number(shares, place.device, 0, where, 1);
    sum += place.share;
  }
  if (sum <= 0) throw ConfigError("no place has a share", where, "give one of them 1");
}

// Every place that may get batches needs a law.
void read_places(const Value& given, const ModuleSpec& module, const PipelineSpec& pipeline,
                 StageSpec& stage) {
  const std::string where = "simulation.stages." + module.name;
  const std::string on = pipeline.where("modules." + module.name + ".device.on");
  std::vector<std::string> known{placement::kInline};
  for (const DeviceSpec& device : pipeline.devices) known.push_back(device.name);
  if (!given.is_null()) refuse_other_keys(given, {"laws", "shares"}, "key of a stage", where);
  for (const std::string& name : names_in(module.device["on"], on)) {
    if (std::ranges::find(known, name) == known.end()) refuse_name("device", name, known, on);
    stage.places.push_back({.device = name, .law = {}});
  }
  read_shares(given["shares"], where + ".shares", stage);
  const bool is_placed = !pipeline.placement.is_null();  // any place may get batches
  for (StageSpec::Place& place : stage.places) {
    const Value& law = given["laws"][place.device];
    const std::string of_law = where + ".laws." + place.device;
    if (!law.is_null()) {
      place.law = batch_law_from(law, of_law);
      place.is_known = true;
    } else if ((place.share > 0 || is_placed) && place.device != placement::kInline) {
      throw ConfigError(
          "nobody says what batches of '" + module.name + "' take on '" + place.device + "'",
          of_law, "{batch_ns: 20000, pkt_ns: 10, byte_ns: 0.1}");
    }
  }
}

StageSpec stage_from(const Value& given, const ModuleSpec& module, const PipelineSpec& pipeline) {
  const Value& device = module.device;
  const std::string where = pipeline.where("modules." + module.name + ".device");
  StageSpec stage;
  read_places(given, module, pipeline, stage);
  stage.batch_pkts = at_least_one(device, "batch_pkts", stage.batch_pkts, where, kMostJobPkts);
  const auto most = static_cast<uint32_t>(number(device, "max_batch_pkts", 0, where, kMostJobPkts));
  stage.max_batch_pkts = std::max(most, stage.batch_pkts);
  stage.age_limit_ns = static_cast<uint64_t>(
      number(device, "age_limit_ns", static_cast<double>(stage.age_limit_ns), where, kMostAgeNs));
  stage.depth = at_least_one(device, "depth", stage.depth, where, kMostDepth);
  stage.is_idle_hold = choice(device, "idle", {"release", "hold"}, where) == 1;
  return stage;
}

// The queue in front of a stage takes its parameters as a module of kind `queue` does.
void move_queue_params(ModuleSpec& module) {
  module.params["size_pkts"] = kStageQueuePkts;
  for (const char* const key : {"size_pkts", "credit_pkts", "backpressure"}) {
    const Value& value = module.device[key];
    if (!value.is_null()) module.params[key] = value;
  }
}

// Kinds that add_stages() looks for: those with a device, and those that bring packets.
Kinds kinds_around_stages(const PipelineSpec& pipeline) {
  Kinds kinds;
  kinds.modules["queue"] = {.shape = Shape::kQueue};
  for (const ModuleSpec& module : pipeline.modules) {
    const bool is_reached = std::ranges::any_of(
        pipeline.edges, [&](const EdgeSpec& edge) { return edge.to == module.name; });
    if (!is_reached) kinds.modules[module.kind] = {.shape = Shape::kInput};
  }
  for (const ModuleSpec& module : pipeline.modules) {
    if (module.device.is_null()) continue;
    kinds.modules[module.kind] = {};
    kinds.modules[module.kind + kStageSuffix] = {.shape = Shape::kQueue};
  }
  return kinds;
}

}  // namespace

void read_stages(const Value& stages, Spec& spec) {
  PipelineSpec& pipeline = spec.pipeline;
  std::vector<std::string> names;
  for (const ModuleSpec& module : pipeline.modules) {
    if (!module.device.is_null()) names.push_back(module.name);
  }
  if (!stages.is_null())
    refuse_other_keys(stages, names, "module with a device", "simulation.stages");
  for (ModuleSpec& module : pipeline.modules) {
    if (module.device.is_null()) continue;
    spec.stages[module.name] = stage_from(stages[module.name], module, pipeline);
    move_queue_params(module);
  }
  std::vector<ConfigError> errors;
  Mistakes mistakes{errors, pipeline.source_map};
  add_stages(pipeline, kinds_around_stages(pipeline), mistakes);
  if (!errors.empty()) throw errors.front();
}

}  // namespace batchplane::sim
