// SPDX-License-Identifier: BSD-3-Clause
#include "modules/cost_table.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/cost_law_value.h"
#include "common/environment.h"

namespace bench {

using batchplane::Dict;
using batchplane::Value;

namespace {

constexpr size_t kMaxParamBytes = 4096;

nlohmann::json to_json(const Value& value) {
  if (value.is_bool()) return value.as_bool();
  if (value.is_int()) return value.as_int();
  if (value.is_double()) return value.as_double();
  if (value.is_string()) return value.as_string();
  if (value.is_list()) {
    nlohmann::json list = nlohmann::json::array();
    for (const Value& item : value.as_list()) list.push_back(to_json(item));
    return list;
  }
  if (value.is_dict()) {
    nlohmann::json dict = nlohmann::json::object();
    for (const auto& [key, item] : value.as_dict()) dict[key] = to_json(item);
    return dict;
  }
  return nullptr;
}

// Long tables are named by their length: the hash tells them apart.
nlohmann::json short_params(const Dict& params) {
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [key, value] : params) {
    nlohmann::json item = to_json(value);
    const bool is_long = value.is_list() && item.dump().size() > kMaxParamBytes;
    all[key] = is_long ? nlohmann::json(std::to_string(value.as_list().size()) + " entries") : item;
  }
  return all;
}

nlohmann::json entry_of(const ModuleCase& one, const batchplane::profile::ModuleProfile& p) {
  nlohmann::json entry = to_json(Value(batchplane::cost_law_value(p.law)));
  entry.update({{"kind", one.kind},
                {"configuration", one.label},
                {"configuration_hash", configuration_hash(one.kind, one.params)},
                {"params", short_params(one.params)},
                {"cost_per_batch_95_ns", {p.per_batch_ns.low, p.per_batch_ns.high}},
                {"cost_per_pkt_95_ns", {p.per_pkt_ns.low, p.per_pkt_ns.high}},
                {"r_squared", p.fit.r_squared},
                {"small_error_ratio", p.fit.small_error_ratio},
                {"left_out_error_ratio", p.fit.left_out_error_ratio},
                {"note", one.note}});
  return entry;
}

}  // namespace

std::string configuration_hash(const std::string& kind, const Dict& params) {
  uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char c : kind + "\n" + to_json(Value(params)).dump()) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string cost_table_json(const std::vector<ModuleCase>& cases,
                            const std::vector<batchplane::profile::ModuleProfile>& profiles,
                            const std::string& lookup_path) {
  nlohmann::json modules = nlohmann::json::array();
  for (size_t i = 0; i < cases.size(); ++i) modules.push_back(entry_of(cases[i], profiles[i]));
  const nlohmann::json table = {
      {"version", 2}, {"cpu", cpu_model()}, {"lookup_path", lookup_path}, {"modules", modules}};
  return table.dump(1) + "\n";
}

}  // namespace bench
