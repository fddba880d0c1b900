// SPDX-License-Identifier: BSD-3-Clause
#include "modules/cost_table.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/environment.h"

namespace bench {

using batchplane::Dict;
using batchplane::Value;

namespace {

constexpr size_t kMostParamBytes = 4096;

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
    const bool is_long = value.is_list() && item.dump().size() > kMostParamBytes;
    all[key] = is_long ? nlohmann::json(std::to_string(value.as_list().size()) + " entries") : item;
  }
  return all;
}

nlohmann::json interval_json(const Interval& interval) {
  return {{"value", interval.median}, {"low", interval.low}, {"high", interval.high}};
}

}  // namespace

Line fit_cost_law(const std::vector<double>& batch_pkts, const std::vector<double>& ns) {
  Line line = fit_line(batch_pkts, ns);
  if (line.at_zero >= 0 && line.slope >= 0) return line;
  double xx = 0;
  double xy = 0;
  double sum_y = 0;
  for (size_t i = 0; i < ns.size(); ++i) {
    xx += batch_pkts[i] * batch_pkts[i];
    xy += batch_pkts[i] * ns[i];
    sum_y += ns[i];
  }
  const double mean_y = sum_y / static_cast<double>(ns.size());
  line = line.slope < 0 ? Line{std::max(mean_y, 0.0), 0} : Line{0, std::max(xy / xx, 0.0)};
  double left = 0;
  double spread = 0;
  for (size_t i = 0; i < ns.size(); ++i) {
    left += (ns[i] - line.at(batch_pkts[i])) * (ns[i] - line.at(batch_pkts[i]));
    spread += (ns[i] - mean_y) * (ns[i] - mean_y);
  }
  line.r_squared = spread > 0 ? std::max(1 - left / spread, 0.0) : 1.0;
  return line;
}

std::string configuration_hash(const std::string& kind, const Dict& params) {
  uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char c : kind + "\n" + to_json(Value(params)).dump()) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string cost_table_json(const std::vector<CostRow>& rows, const std::string& lookup_path) {
  nlohmann::json modules = nlohmann::json::array();
  for (const CostRow& row : rows) {
    nlohmann::json points = nlohmann::json::array();
    for (const auto& [batch_pkts, ns] : row.points) {
      points.push_back({{"batch_pkts", batch_pkts}, {"ns", ns}});
    }
    modules.push_back({{"module", row.kind},
                       {"configuration", row.label},
                       {"configuration_hash", configuration_hash(row.kind, row.params)},
                       {"params", short_params(row.params)},
                       {"batch_pkts", {row.least_pkts, row.most_pkts}},
                       {"cost_per_batch_ns", interval_json(row.per_batch_ns)},
                       {"cost_per_pkt_ns", interval_json(row.per_pkt_ns)},
                       {"r_squared", row.r_squared},
                       {"points", points},
                       {"note", row.note}});
  }
  const nlohmann::json table = {
      {"version", 1}, {"cpu", cpu_model()}, {"lookup_path", lookup_path}, {"modules", modules}};
  return table.dump(1) + "\n";
}

}  // namespace bench
