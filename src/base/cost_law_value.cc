// SPDX-License-Identifier: BSD-3-Clause
#include "base/cost_law_value.h"

#include "base/error.h"

namespace batchplane {
namespace {

constexpr double kMaxNs = 1e9;
constexpr int64_t kMaxPkts = 1 << 24;

double time_from(const Value& value, const std::string& what, const std::string& where) {
  const double ns = value.is_number() ? value.as_double() : -1;
  if (ns >= 0 && ns <= kMaxNs) return ns;
  const std::string given = value.is_number() ? std::to_string(ns) : value.type_name();
  throw ConfigError(what + " is " + given, where, "give a time from 0 to 1000000000 ns");
}

std::vector<CostLaw::Point> points_from(const Value& value, const std::string& where) {
  std::vector<CostLaw::Point> points;
  for (const Value& ns : value["table_ns"].as_list()) {
    const auto n = static_cast<uint32_t>(points.size() + 1);
    points.push_back(
        {n, time_from(ns, "time " + std::to_string(n) + " of the table", where + ".table_ns")});
  }
  if (points.empty()) {
    throw ConfigError("the table is empty", where + ".table_ns", "give a time for each size");
  }
  if (value["table_pkts"].is_null()) return points;
  const List& sizes = value["table_pkts"].as_list();
  if (sizes.size() != points.size()) {
    throw ConfigError(
        std::to_string(sizes.size()) + " sizes have " + std::to_string(points.size()) + " times",
        where + ".table_pkts", "give each time in table_ns its size");
  }
  int64_t before = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t size = sizes[i].as_int();
    if (size <= before || size > kMaxPkts) {
      throw ConfigError("size " + std::to_string(size) + " comes after " + std::to_string(before),
                        where + ".table_pkts", "let sizes ascend, from 1 packet on");
    }
    points[i].size_pkts = static_cast<uint32_t>(size);
    before = size;
  }
  return points;
}

}  // namespace

CostLaw cost_law_from(const Value& value, const std::string& where) {
  const bool has_table = !value["table_ns"].is_null();
  const bool has_line =
      !value["cost_per_batch_ns"].is_null() && !value["cost_per_pkt_ns"].is_null();
  const bool has_half =
      !has_line && (!value["cost_per_batch_ns"].is_null() || !value["cost_per_pkt_ns"].is_null());
  if (has_half || !(has_line || has_table)) {
    throw ConfigError("the cost is not whole", where,
                      "give cost_per_batch_ns and cost_per_pkt_ns, or table_ns");
  }
  CostLaw::Line line;
  if (has_line) {
    line = {time_from(value["cost_per_batch_ns"], "'cost_per_batch_ns'", where),
            time_from(value["cost_per_pkt_ns"], "'cost_per_pkt_ns'", where)};
  }
  if (!has_table) return CostLaw(line);
  std::vector<CostLaw::Point> points = points_from(value, where);
  return has_line ? CostLaw(std::move(points), line) : CostLaw(std::move(points));
}

Dict cost_law_value(const CostLaw& law) {
  Dict value{{"cost_per_batch_ns", law.line().cost_per_batch_ns},
             {"cost_per_pkt_ns", law.line().cost_per_pkt_ns}};
  if (!law.is_table()) return value;
  List times;
  List sizes;
  bool is_dense = true;
  for (const CostLaw::Point& point : law.points()) {
    times.emplace_back(point.ns);
    sizes.emplace_back(point.size_pkts);
    is_dense &= point.size_pkts == times.size();
  }
  value["table_ns"] = std::move(times);
  if (!is_dense) value["table_pkts"] = std::move(sizes);
  return value;
}

}  // namespace batchplane
