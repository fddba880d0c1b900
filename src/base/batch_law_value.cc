// SPDX-License-Identifier: BSD-3-Clause
#include "base/batch_law_value.h"

#include <algorithm>

#include "base/error.h"

namespace batchplane {
namespace {

constexpr int64_t kMostAxisPoint = 1 << 20;  // packets of a batch, or bytes of a packet
constexpr size_t kMostAxisPoints = 64;

const List& list_from(const Value& value, const std::string& where) {
  if (!value.is_list() || value.as_list().empty() || value.as_list().size() > kMostAxisPoints)
    throw ConfigError("expected a list of 1 to " + std::to_string(kMostAxisPoints), where);
  return value.as_list();
}

double ns_from(const Value& value, const std::string& where) {
  const double ns = value.is_number() ? value.as_double() : -1;
  if (ns >= 0 && ns <= kMostLawNs) return ns;
  const std::string given = value.is_number() ? std::to_string(ns) : value.type_name();
  throw ConfigError("'" + given + "' is no time", where, "give ns from 0 to 1000000000");
}

std::vector<uint32_t> axis_from(const Value& value, const std::string& where) {
  std::vector<uint32_t> points;
  int64_t before = 0;
  for (const Value& given : list_from(value, where)) {
    const int64_t point = given.is_int() ? given.as_int() : 0;
    if (point <= before || point > kMostAxisPoint)
      throw ConfigError("expected whole numbers that ascend from 1", where);
    points.push_back(static_cast<uint32_t>(point));
    before = point;
  }
  return points;
}

std::vector<double> times_from(const Value& value, const BatchTable& table,
                               const std::string& where) {
  std::vector<double> times;
  const List& rows = list_from(value, where);
  const bool is_whole =
      rows.size() == table.batch_pkts.size() && std::ranges::all_of(rows, [&](const Value& row) {
        return row.is_list() && row.as_list().size() == table.pkt_bytes.size();
      });
  if (!is_whole) {
    throw ConfigError("the table is not whole", where,
                      "give a list for each of batch_pkts, with a time for each of pkt_bytes");
  }
  for (const Value& row : rows) {
    for (const Value& ns : row.as_list()) times.push_back(ns_from(ns, where));
  }
  return times;
}

BatchTable table_from(const Value& value, const std::string& where) {
  if (!value.is_dict()) throw ConfigError("expected batch_pkts, pkt_bytes and ns", where);
  for (const auto& [key, part] : value.as_dict()) {
    if (key != "batch_pkts" && key != "pkt_bytes" && key != "ns" && key != "busy_ns")
      throw ConfigError("'" + key + "' is no part of a table", where,
                        "batch_pkts, pkt_bytes, ns or busy_ns");
  }
  BatchTable table;
  table.batch_pkts = axis_from(value["batch_pkts"], where + ".batch_pkts");
  table.pkt_bytes = axis_from(value["pkt_bytes"], where + ".pkt_bytes");
  table.alone_ns = times_from(value["ns"], table, where + ".ns");
  if (!value["busy_ns"].is_null())
    table.busy_ns = times_from(value["busy_ns"], table, where + ".busy_ns");
  return table;
}

List rows_of(const BatchTable& table, const std::vector<double>& times) {
  List rows;
  for (size_t i = 0; i < times.size(); i += table.pkt_bytes.size()) {
    List row;
    for (size_t j = 0; j < table.pkt_bytes.size(); ++j) row.emplace_back(times[i + j]);
    rows.emplace_back(std::move(row));
  }
  return rows;
}

}  // namespace

BatchLaw batch_law_from(const Value& value, const std::string& where) {
  if (!value.is_dict())
    throw ConfigError("expected {batch: 20us, pkt_ns: 15, byte_ns: 0.05}", where);
  BatchLaw law;
  for (const auto& [key, part] : value.as_dict()) {
    const std::string at = where + "." + key;
    if (part.is_null()) continue;
    if (key == "table") {
      law.table = std::make_shared<const BatchTable>(table_from(part, at));
      continue;
    }
    const auto known = std::ranges::find(kLawKeys, key, [](const auto& k) { return k.first; });
    if (known == kLawKeys.end()) {
      throw ConfigError("'" + key + "' is no part of a law", where,
                        "batch_ns, pkt_ns, byte_ns, length_ns or table");
    }
    law.*known->second = ns_from(part, at);
  }
  return law;
}

Dict batch_law_value(const BatchLaw& law) {
  Dict value;
  for (const auto& [key, part] : kLawKeys) value[std::string(key)] = law.*part;
  if (law.table == nullptr) return value;
  const BatchTable& table = *law.table;
  const auto list_of = [](const std::vector<uint32_t>& points) {
    return List(points.begin(), points.end());
  };
  Dict told{{"batch_pkts", list_of(table.batch_pkts)},
            {"pkt_bytes", list_of(table.pkt_bytes)},
            {"ns", rows_of(table, table.alone_ns)}};
  if (!table.busy_ns.empty()) told["busy_ns"] = rows_of(table, table.busy_ns);
  value["table"] = std::move(told);
  return value;
}

}  // namespace batchplane
