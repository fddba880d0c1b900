// SPDX-License-Identifier: BSD-3-Clause
// route_declare.cc - fills a route table from parameters, carries it through an apply, and saves
// it.
#include <filesystem>

#include "base/error.h"
#include "modules/route/route_commands.h"

namespace batchplane {
namespace {

constexpr const char* kDeclaring[] = {
    "routes",       "next_hops",     "file",           "synthetic",       "interfaces",
    "max_prefixes", "max_next_hops", "next_hop_bytes", "max_long_blocks", "deleted_routes"};

// Changes when the file is rewritten.
std::string stamp_of(const std::string& path) {
  std::error_code none;
  const auto size_bytes = std::filesystem::file_size(path, none);
  const auto written = std::filesystem::last_write_time(path, none);
  if (none) return "";
  return std::to_string(size_bytes) + '/' + std::to_string(written.time_since_epoch().count());
}

// The interfaces that routes can refer to: equal interfaces give equal text.
template <class Family>
List interface_list(const std::vector<Interface>& interfaces) {
  List list;
  for (const Interface& interface : interfaces) {
    std::string text = interface.name;
    for (const auto& own : Family::addresses(interface)) {
      text += ' ';
      text += Family::format(own);
    }
    list.emplace_back(std::move(text));
  }
  return list;
}

template <class Family>
Dict declaration_of(const Args& args, const std::vector<Interface>& interfaces) {
  Dict declaration{{"all interfaces", interface_list<Family>(interfaces)}};
  for (const char* key : kDeclaring) {
    if (args.given(key)) declaration[key] = args.at(key);
  }
  if (!args.string("file").empty()) declaration["file stamp"] = stamp_of(args.string("file"));
  return declaration;
}

}  // namespace

template <class Family>
std::shared_ptr<RouteTableOf<Family>> shared_route_table(Environment& env,
                                                         const std::string& name) {
  using Table = RouteTableOf<Family>;
  return env.shared<Table>(name, [&] {
    return std::make_unique<Table>(name, env.quiescence, env.previous<Table>(name).get());
  });
}
template std::shared_ptr<RouteTable> shared_route_table<Ipv4Family>(Environment&,
                                                                    const std::string&);
template std::shared_ptr<RouteTable6> shared_route_table<Ipv6Family>(Environment&,
                                                                     const std::string&);

template <class Family>
RouteCommandsOf<Family>::RouteCommandsOf(const Args& args)
    : where_(args.where()),
      table_(shared_route_table<Family>(
          args.env(), args.string("table").empty() ? args.name() : args.string("table"))),
      interfaces_(args.env().interfaces),
      syntax_(*table_, interfaces_),
      is_check_(args.env().is_check) {
  is_owner_ = args.string("table").empty() || args.string("table") == args.name();
  for (const char* key : kDeclaring) is_owner_ = is_owner_ || args.given(key);
  if (!is_owner_) return;
  table_->claim(args.name());
  declare(args);
}

template <class Family>
void RouteCommandsOf<Family>::declare(const Args& args) {
  typename Table::Origin origin{.declaration = declaration_of<Family>(args, interfaces_),
                                .file = args.string("file"),
                                .synthetic = args.dict("synthetic")};
  if (table_->resume(origin.declaration)) return;
  table_->build(route_table_size<Family>(origin.declaration), is_check_);
  try {
    declare_next_hops(args.list("next_hops"));
    const std::vector<Route> routes = declared_routes(args);
    for (const Route& route : routes) {
      if (route.way.is_bulk) origin.bulk.push_back(route.prefix);
    }
    table_->add(routes);
  } catch (const ConfigError& error) {
    throw ConfigError(error.what(), error.where().empty() ? where_ : error.where(), error.fix());
  }
  table_->hops().drop_unused();
  table_->set_origin(std::move(origin));
}

template <class Family>
void RouteCommandsOf<Family>::declare_next_hops(const List& list) {
  std::set<uint32_t> declared;
  // Groups may refer to entries that are listed after them.
  for (const bool wants_groups : {false, true}) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].has("group") != wants_groups) continue;
      const std::string where = where_ + ".next_hops[" + std::to_string(i) + "]";
      if (!list[i]["id"].is_int())
        throw ConfigError("id is missing", where, "give it an integer id");
      const auto id = static_cast<uint32_t>(list[i]["id"].as_int());
      if (!declared.insert(id).second)
        throw ConfigError("id is taken twice", where, "use another id");
      table_->hops().set(id, syntax_.parse_next_hop(list[i], where));
    }
  }
}

template <class Family>
void RouteCommandsOf<Family>::finish_table() const {
  if (table_->is_built()) return;
  typename Table::Origin origin{
      .declaration = {{"all interfaces", interface_list<Family>(interfaces_)}}};
  if (table_->resume(origin.declaration)) return;
  table_->build({}, is_check_);
  table_->set_origin(std::move(origin));
}

template <class Family>
std::vector<RouteOf<Family>> RouteCommandsOf<Family>::declared_routes(const Args& args) const {
  std::set<Prefix> deleted;
  for (const Value& value : args.list("deleted_routes")) {
    deleted.insert(prefix_in<Family>(value, where_ + ".deleted_routes"));
  }
  std::vector<Route> routes = syntax_.make_synthetic(args.dict("synthetic"), where_ + ".synthetic");
  if (!args.string("file").empty()) {
    const std::vector<Route> from_file = syntax_.parse_file(args.string("file"));
    routes.insert(routes.end(), from_file.begin(), from_file.end());
  }
  std::erase_if(routes, [&](const Route& route) { return deleted.contains(route.prefix); });
  const List& list = args.list("routes");
  for (size_t i = 0; i < list.size(); ++i) {
    routes.push_back(syntax_.parse_route(list[i], where_ + ".routes[" + std::to_string(i) + "]"));
  }
  if (args.flag("interfaces")) {
    const std::vector<Route> own = syntax_.interface_routes();
    routes.insert(routes.end(), own.begin(), own.end());
  }
  return routes;
}

template <class Family>
void RouteCommandsOf<Family>::inherit(const RouteCommandsOf& old) {
  if (table_->shares_with(*old.table_) || !old.table_->is_built()) return;
  try {
    std::vector<Route> routes;
    for (const auto& [prefix, ways] : old.table_->routes()) {
      for (const RouteWay& way : ways) {
        if (way.source != RouteSource::kUser) continue;
        routes.push_back(syntax_.parse_route(old.syntax_.format_route({prefix, way}),
                                             "live route " + Family::format(prefix)));
      }
    }
    table_->add(routes);
  } catch (const ConfigError&) {
    table_->hops().drop_unused();
    throw;
  }
}

template <class Family>
Dict RouteCommandsOf<Family>::saved_params() const {
  if (!is_owner_ || !table_->is_built()) return {};
  List routes;
  std::set<Prefix> bulk;
  for (const auto& [prefix, ways] : table_->routes()) {
    for (const RouteWay& way : ways) {
      if (way.is_bulk) bulk.insert(bulk.end(), prefix);
      if (way.is_bulk || way.source == RouteSource::kLocal ||
          way.source == RouteSource::kConnected) {
        continue;
      }
      routes.push_back(syntax_.format_route({prefix, way}));
    }
  }
  List deleted;
  for (const Prefix& prefix : table_->origin().bulk) {
    if (!bulk.contains(prefix)) deleted.push_back(Family::format(prefix));
  }
  for (const Value& value : table_->origin().declaration.contains("deleted_routes")
                                ? table_->origin().declaration.at("deleted_routes").as_list()
                                : List{}) {
    deleted.push_back(value);
  }
  List next_hops;
  for (const uint32_t id : table_->hops().explicit_ids()) {
    next_hops.push_back(syntax_.format_next_hop(id));
  }
  return {{"routes", std::move(routes)},
          {"next_hops", std::move(next_hops)},
          {"deleted_routes", std::move(deleted)},
          {"file", table_->origin().file},
          {"synthetic", table_->origin().synthetic}};
}

template RouteCommandsOf<Ipv4Family>::RouteCommandsOf(const Args&);
template void RouteCommandsOf<Ipv4Family>::finish_table() const;
template void RouteCommandsOf<Ipv4Family>::inherit(const RouteCommandsOf&);
template Dict RouteCommandsOf<Ipv4Family>::saved_params() const;
template RouteCommandsOf<Ipv6Family>::RouteCommandsOf(const Args&);
template void RouteCommandsOf<Ipv6Family>::finish_table() const;
template void RouteCommandsOf<Ipv6Family>::inherit(const RouteCommandsOf&);
template Dict RouteCommandsOf<Ipv6Family>::saved_params() const;

}  // namespace batchplane
