// SPDX-License-Identifier: BSD-3-Clause
// module_schema.cc - kinds of modules and ports, generator parameters and drop reasons.
#include "app/start/module_schema.h"

#include "core/module/kind.h"
#include "exec/batch.h"
#include "ports/port_kinds.h"
#include "spec/config_json.h"
#include "traffic/generator.h"

namespace batchplane::app {
namespace {

constexpr double kNoLimit = 9.2e18;

Value bound_value(double bound) {
  if (bound <= -kNoLimit || bound >= kNoLimit) return {};
  const auto whole = static_cast<int64_t>(bound);
  return static_cast<double>(whole) == bound ? Value(whole) : Value(bound);
}

Value param_value(const ParamSpec& spec) {
  return Dict{{"name", spec.name},
              {"type", param_type_name(spec.type)},
              {"unit", spec.unit},
              {"default", spec.default_value},
              {"is_required", spec.default_value.is_null()},
              {"min", bound_value(spec.min)},
              {"max", bound_value(spec.max)},
              {"choices", List(spec.choices.begin(), spec.choices.end())},
              {"help", spec.help}};
}

List params_value(const std::vector<ParamSpec>& specs) {
  List params;
  for (const ParamSpec& spec : specs) params.push_back(param_value(spec));
  return params;
}

Value reason_value(const DropReasonInfo& info) {
  return Dict{{"name", info.name}, {"meaning", info.meaning}, {"remedy", info.remedy}};
}

const char* state_name(StateOf state) {
  static constexpr const char* kNames[] = {"none", "shared", "sharded", "one_owner"};
  return kNames[static_cast<uint32_t>(state)];
}
const char* feed_name(Feed feed) {
  static constexpr const char* kNames[] = {"none", "port", "queue", "itself"};
  return kNames[static_cast<uint32_t>(feed)];
}

Value kind_value(const ModuleInfo& info) {
  List drops;
  for (const DropReason* reason : info.drops) {
    drops.push_back(reason_value(drop_reasons()[reason->index()]));
  }
  return Dict{{"kind", info.kind},
              {"help", info.help},
              {"shape", kShapeNames[static_cast<uint32_t>(info.shape)]},
              {"state", state_name(info.state.value_or(StateOf::kNone))},
              {"feed", feed_name(info.feed)},
              {"is_egress", info.is_egress},
              {"params", params_value(info.params)},
              {"gate_names", List(info.gate_names.begin(), info.gate_names.end())},
              {"first_named_gate", info.first_named_gate},
              {"drops", std::move(drops)},
              {"notes", info.notes}};
}

}  // namespace

Value schema_value() {
  List modules;
  for (const ModuleInfo* info : all_module_kinds()) modules.push_back(kind_value(*info));
  List ports;
  for (const PortKindInfo& info : port_kinds()) {
    ports.emplace_back(Dict{{"kind", info.kind},
                            {"help", info.help},
                            {"params", params_value(info.params)},
                            {"is_memory", info.is_memory},
                            {"takes_generators", info.takes_generators},
                            {"notes", info.notes}});
  }
  List reasons;
  for (const DropReasonInfo& info : drop_reasons()) reasons.push_back(reason_value(info));
  return Dict{{"version", kPipelineVersion},
              {"max_batch_pkts", exec::kMaxBatchPkts},
              {"modules", std::move(modules)},
              {"ports", std::move(ports)},
              {"generator", Dict{{"params", params_value(traffic::generator_params())}}},
              {"drop_reasons", std::move(reasons)}};
}

}  // namespace batchplane::app
