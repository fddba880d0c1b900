// SPDX-License-Identifier: BSD-3-Clause
// route_commands.cc - edits and lists a route table live.
#include "modules/route/route_commands.h"

#include "base/error.h"

namespace batchplane {
namespace {

const List* list_in(const Value& args) {
  if (args["routes"].is_list()) return &args["routes"].as_list();
  if (args["items"].is_list()) return &args["items"].as_list();
  return nullptr;
}

std::string file_in(const Value& args) {
  for (const char* key : {"file", "path"}) {
    if (args[key].is_string()) return args[key].as_string();
  }
  return "";
}

}  // namespace

template <class Family>
typename Family::Prefix prefix_in(const Value& value, const std::string& where) {
  const Value& text = value.is_dict() ? value["prefix"] : value;
  const auto prefix = text.is_string() ? Family::parse_prefix(text.as_string()) : std::nullopt;
  if (!prefix)
    throw ConfigError(std::string("expected an ") + Family::kName + " prefix", where,
                      Family::kAPrefix);
  return *prefix;
}
template net::Prefix4 prefix_in<Ipv4Family>(const Value&, const std::string&);
template net::Prefix6 prefix_in<Ipv6Family>(const Value&, const std::string&);

template <class Family>
Value RouteCommandsOf<Family>::run(const std::string& verb, const Value& args) {
  if (!table_->is_built()) throw ConfigError("table '" + table_->name() + "' is not in use");
  if (!args.is_dict()) throw ConfigError("expected a mapping", verb);
  try {
    if (verb == "add") return add(args);
    if (verb == "delete") return erase(args);
    if (verb == "replace") return replace(args);
    if (verb == "list") return list(args);
    if (verb == "lookup") return look_up(args);
    if (verb == "next_hop") return change_next_hop(args);
  } catch (const ConfigError&) {
    table_->hops().drop_unused();
    throw;
  }
  throw ConfigError("a lookup has no command '" + verb + "'", "",
                    "it has add, delete, replace, list, lookup, next_hop");
}

template <class Family>
std::vector<RouteOf<Family>> RouteCommandsOf<Family>::routes_in(const Value& args) const {
  std::vector<Route> routes;
  const auto push = [&](const Value& value, const std::string& where) {
    routes.push_back(syntax_.parse_route(value, where));
    if (!value.has("source")) routes.back().way.source = RouteSource::kUser;
  };
  if (const List* list = list_in(args); list != nullptr) {
    for (size_t i = 0; i < list->size(); ++i) push((*list)[i], "routes[" + std::to_string(i) + "]");
  } else if (const std::string file = file_in(args); !file.empty()) {
    routes = syntax_.parse_file(file);
  } else {
    push(args, "route");
  }
  return routes;
}

template <class Family>
Value RouteCommandsOf<Family>::add(const Value& args) {
  std::vector<Route> routes = routes_in(args);
  for (Route& route : routes) {
    if (route.way.is_bulk) route.way.source = RouteSource::kUser;
    route.way.is_bulk = false;
  }
  table_->add(routes);
  return Dict{{"count", static_cast<uint64_t>(routes.size())}};
}

template <class Family>
Value RouteCommandsOf<Family>::erase(const Value& args) {
  uint32_t n = 0;
  if (const List* list = list_in(args); list != nullptr) {
    std::vector<Prefix> prefixes;
    for (const Value& value : *list) prefixes.push_back(prefix_in<Family>(value, "delete"));
    n = table_->erase(prefixes);
    return Dict{{"count", n}};
  }
  const Prefix prefix = prefix_in<Family>(args, "delete");
  std::optional<RouteSource> source;
  if (args["source"].is_string()) source = parse_route_source(args["source"].as_string());
  if (args.has("source") && !source)
    throw ConfigError("source must be local, connected, user or static");
  std::optional<uint32_t> metric;
  if (args.has("metric")) metric = static_cast<uint32_t>(args["metric"].as_int());
  n = table_->erase(prefix, source, metric);
  if (n == 0) {
    throw ConfigError("there is no such route to " + Family::format(prefix), "delete",
                      "`list` shows what there is; interface routes need their source named");
  }
  return Dict{{"count", n}};
}

template <class Family>
Value RouteCommandsOf<Family>::replace(const Value& args) {
  if (list_in(args) == nullptr && file_in(args).empty()) {
    throw ConfigError("replace needs routes or file", "replace", "give the whole table");
  }
  std::vector<Route> routes = routes_in(args);
  table_->replace({RouteSource::kStatic, RouteSource::kUser}, routes);
  typename Table::Origin origin{.declaration = table_->origin().declaration, .file = file_in(args)};
  for (const Route& route : routes) {
    if (route.way.is_bulk) origin.bulk.push_back(route.prefix);
  }
  table_->set_origin(std::move(origin));
  return Dict{{"count", static_cast<uint64_t>(routes.size())}};
}

template <class Family>
Value RouteCommandsOf<Family>::list(const Value& args) const {
  const Value& filter = args["filter"].is_dict() ? args["filter"] : args;
  std::optional<Prefix> within;
  if (filter.has("within")) within = prefix_in<Family>(filter["within"], "list.within");
  std::optional<RouteSource> source;
  if (filter.has("source")) {
    source = parse_route_source(filter["source"].as_string());
    if (!source)
      throw ConfigError("source must be local, connected, user or static", "list.source");
  }
  const auto limit = static_cast<uint64_t>(args["limit"].is_int() ? args["limit"].as_int() : 100);
  List shown;
  uint64_t total = 0;
  for (const auto& [prefix, ways] : table_->routes()) {
    if (within &&
        (prefix.length < within->length ||
         !Family::is_zero((prefix.address ^ within->address) & Family::mask(within->length)))) {
      continue;
    }
    for (const RouteWay& way : ways) {
      if (source && way.source != *source) continue;
      if (++total > limit) continue;
      Dict route = syntax_.format_route({prefix, way});
      route["best"] = *table_->best(prefix) == way;
      shown.push_back(std::move(route));
    }
  }
  List next_hops;
  for (const uint32_t id : table_->hops().explicit_ids()) {
    if (next_hops.size() == limit) break;
    next_hops.push_back(syntax_.format_next_hop(id));
  }
  return Dict{{"routes", std::move(shown)}, {"total", total}, {"next_hops", std::move(next_hops)}};
}

template <class Family>
Value RouteCommandsOf<Family>::look_up(const Value& args) const {
  const auto address =
      args["address"].is_string() ? Family::parse(args["address"].as_string()) : std::nullopt;
  if (!address) {
    throw ConfigError(std::string("expected an ") + Family::kName + " address", "lookup.address");
  }
  const auto route = table_->lookup(*address);
  if (!route) return Dict{{"route", Value{}}};
  return Dict{{"route", syntax_.format_route(*route)}, {"next_hop", route->way.next_hop}};
}

template <class Family>
Value RouteCommandsOf<Family>::change_next_hop(const Value& args) {
  if (!args["id"].is_int() || args["id"].as_int() < 0) {
    throw ConfigError("id is missing", "next_hop", "such as {id: 1, gate: 2}");
  }
  const auto id = static_cast<uint32_t>(args["id"].as_int());
  if (args["delete"].is_bool() && args["delete"].as_bool()) {
    table_->hops().erase(id);
    return Dict{{"id", id}};
  }
  table_->hops().set(id, syntax_.parse_next_hop(args, "next_hop"));
  return syntax_.format_next_hop(id);
}

template Value RouteCommandsOf<Ipv4Family>::run(const std::string&, const Value&);
template Value RouteCommandsOf<Ipv6Family>::run(const std::string&, const Value&);

}  // namespace batchplane
