// SPDX-License-Identifier: BSD-3-Clause
#include "modules/egress/tree_items.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text_file.h"
#include "modules/common/item_syntax.h"

namespace batchplane {
namespace {

constexpr int64_t kMaxRate = egress::kMaxPaceBps;
constexpr uint32_t kMostLimitBytes = 1U << 30;
constexpr int64_t kMostLimitUs = 60'000'000;

// The numeric parameters of an entry.
struct NumberKey {
  const char* name;
  int64_t least;
  int64_t most;
  void (*set)(egress::NodeParams& params, int64_t value);
  int64_t (*get)(const egress::NodeParams& params);
};

template <auto Member>
constexpr NumberKey number_key(const char* name, int64_t least, int64_t most) {
  using Number = std::remove_reference_t<decltype(std::declval<egress::NodeParams>().*Member)>;
  return {name, least, most,
          [](egress::NodeParams& params, int64_t value) {
            params.*Member = static_cast<Number>(value);
          },
          [](const egress::NodeParams& params) { return static_cast<int64_t>(params.*Member); }};
}

using Params = egress::NodeParams;
constexpr std::array kNumberKeys{
    number_key<&Params::min_rate_bps>("min_rate_bps", 0, kMaxRate),
    number_key<&Params::ceil_bps>("ceil_bps", 0, kMaxRate),
    number_key<&Params::burst_bytes>("burst_bytes", 0, 1 << 30),
    number_key<&Params::weight>("weight", 1, egress::kMaxNodeWeight),
    number_key<&Params::priority>("priority", 0, egress::kPriorities - 1),
    number_key<&Params::limit_bytes>("limit_bytes", 1, kMostLimitBytes),
};

constexpr const char* kColumns =
    "node, flow, parent, min_rate_bps, ceil_bps, burst_bytes, weight, priority, limit_bytes, "
    "limit_us, queue";

egress::LeafQueue queue_of(std::string_view name, const std::string& where) {
  for (size_t q = 0; q < kQueueNames.size(); ++q) {
    if (name == kQueueNames[q]) return static_cast<egress::LeafQueue>(q);
  }
  throw ConfigError("unknown queue '" + std::string(name) + "'", where,
                    "fifo, codel, fq_codel or pie");
}

// Sets limit_bytes to the bytes that the flow's minimum rate, or its ceiling if it has none,
// carries in limit_us.
void set_limit(TreeItem& item, const std::string& where) {
  if (item.limit_us == 0) return;
  egress::NodeParams& params = item.params;
  const uint64_t rate_bps = params.min_rate_bps != 0 ? params.min_rate_bps : params.ceil_bps;
  if (!item.is_flow || rate_bps == 0) {
    throw ConfigError("limit_us is for flows with a rate", where,
                      "give the flow min_rate_bps or ceil_bps, or limit_bytes instead");
  }
  const double bytes = static_cast<double>(rate_bps) * item.limit_us / 8e6;
  params.limit_bytes = static_cast<uint32_t>(std::clamp(bytes, 1.0, double{kMostLimitBytes}));
}

void check_item(TreeItem& item, const std::string& where) {
  if (item.is_flow == !item.name.empty()) {
    throw ConfigError("an entry is either a flow or a node", where,
                      "give it `flow` with a number, or `node` with a name");
  }
  if (!item.is_flow && item.params.queue != egress::LeafQueue::kFifo) {
    throw ConfigError("a node holds no packets", where, "give `queue` to flows");
  }
  const egress::Edited range = egress::check_range(item.params);
  if (range != egress::Edited::kYes) throw ConfigError(message_of(range), where);
  set_limit(item, where);
}

std::string text_under(const Value& item, const char* key, const std::string& where) {
  if (!item.has(key)) return {};
  if (!item[key].is_string()) {
    throw ConfigError("expected a name", where + "." + key, "a string");
  }
  return item[key].as_string();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

void split(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  for (;;) {
    const size_t comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

int64_t number_in(std::string_view cell, const char* column, int64_t least, int64_t most,
                  const std::string& where) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool is_whole = error == std::errc() && end == cell.data() + cell.size();
  if (!is_whole || value < least || value > most) {
    throw ConfigError("'" + std::string(cell) + "' under " + column + " is no such integer", where,
                      "from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

// Sets one parameter from a cell of a CSV row.
using Setter = std::function<void(TreeItem& item, std::string_view cell, const std::string& where)>;

Setter setter_of(std::string_view column, const FlowNumbers& numbers, const std::string& where) {
  if (column == "node") return [](TreeItem& item, auto cell, const auto&) { item.name = cell; };
  if (column == "parent") return [](TreeItem& item, auto cell, const auto&) { item.parent = cell; };
  if (column == "flow") {
    return [numbers](TreeItem& item, auto cell, const auto& at) {
      item.is_flow = true;
      item.flow = numbers.parse_text(cell, at);
    };
  }
  if (column == "queue") {
    return
        [](TreeItem& item, auto cell, const auto& at) { item.params.queue = queue_of(cell, at); };
  }
  if (column == "limit_us") {
    return [](TreeItem& item, auto cell, const auto& at) {
      item.limit_us = static_cast<uint32_t>(number_in(cell, "limit_us", 1, kMostLimitUs, at));
    };
  }
  for (const NumberKey& key : kNumberKeys) {
    if (column != key.name) continue;
    return [&key](TreeItem& item, auto cell, const auto& at) {
      key.set(item.params, number_in(cell, key.name, key.least, key.most, at));
    };
  }
  throw ConfigError("unknown column '" + std::string(column) + "'", where,
                    std::string("known are ") + kColumns);
}

}  // namespace

TreeItem parse_tree_item(const Value& item, const TreeDefaults& otherwise,
                         const std::string& where) {
  check_keys(item,
             {"node", "flow", "parent", "min_rate_bps", "ceil_bps", "burst_bytes", "weight",
              "priority", "limit_bytes", "limit_us", "queue"},
             where);
  TreeItem parsed{.is_flow = item.has("flow"),
                  .name = text_under(item, "node", where),
                  .parent = text_under(item, "parent", where),
                  .params = otherwise.params};
  if (parsed.is_flow) {
    parsed.flow = otherwise.numbers.parse(item["flow"], where + ".flow");
  }
  for (const NumberKey& key : kNumberKeys) {
    if (!item.has(key.name)) continue;
    key.set(parsed.params, int_under(item, key.name, key.least, key.most, 0, where));
  }
  parsed.limit_us = static_cast<uint32_t>(int_under(item, "limit_us", 1, kMostLimitUs, 0, where));
  const std::string queue = text_under(item, "queue", where);
  if (!queue.empty()) parsed.params.queue = queue_of(queue, where + ".queue");
  check_item(parsed, where);
  return parsed;
}

Dict tree_item_value(const TreeItem& item, const TreeDefaults& otherwise) {
  Dict value;
  if (item.is_flow) {
    value["flow"] = item.flow;
  } else {
    value["node"] = item.name;
  }
  if (!item.parent.empty()) value["parent"] = item.parent;
  for (const NumberKey& key : kNumberKeys) {
    if (key.get(item.params) != key.get(otherwise.params)) value[key.name] = key.get(item.params);
  }
  if (item.params.queue != otherwise.params.queue) {
    value["queue"] = kQueueNames[static_cast<size_t>(item.params.queue)];
  }
  return value;
}

void each_tree_row(const std::string& path, const TreeDefaults& otherwise, const std::string& where,
                   const std::function<void(TreeItem item, const std::string& where)>& use) {
  std::ifstream in = open_text_file(path, where);
  std::vector<Setter> setters;
  std::vector<std::string_view> cells;
  std::string line;
  for (size_t n = 1; std::getline(in, line); ++n) {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    const std::string at = path + ":" + std::to_string(n);
    split(text, cells);
    if (setters.empty()) {
      for (const std::string_view column : cells)
        setters.push_back(setter_of(column, otherwise.numbers, at));
      continue;
    }
    if (cells.size() != setters.size()) {
      throw ConfigError(std::to_string(cells.size()) + " cells under " +
                            std::to_string(setters.size()) + " columns",
                        at, "as many commas as in the first line");
    }
    TreeItem item{.params = otherwise.params};
    for (size_t i = 0; i < cells.size(); ++i) {
      if (!cells[i].empty()) setters[i](item, cells[i], at);
    }
    check_item(item, at);
    use(std::move(item), at);
  }
  if (setters.empty()) throw ConfigError("no columns", path, std::string("known are ") + kColumns);
}

}  // namespace batchplane
