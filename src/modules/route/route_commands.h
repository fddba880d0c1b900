// SPDX-License-Identifier: BSD-3-Clause
// route_commands.h - the control side of a lookup module: parameters, live commands, and what
// `save` writes.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/module/args.h"
#include "core/module/environment.h"
#include "modules/route/route_syntax.h"
#include "modules/route/route_table.h"

namespace batchplane {

template <class Family>
[[nodiscard]] std::vector<ParamSpec> route_params();
template <class Family>
[[nodiscard]] std::string route_notes();
// The table called `name` of this pipeline, created on first use.
template <class Family = Ipv4Family>
[[nodiscard]] std::shared_ptr<RouteTableOf<Family>> shared_route_table(Environment& env,
                                                                       const std::string& name);

// The prefix in `value`, given directly or under `prefix`; throws ConfigError.
template <class Family = Ipv4Family>
[[nodiscard]] typename Family::Prefix prefix_in(const Value& value, const std::string& where);

// Control thread.
template <class Family>
class RouteCommandsOf {
 public:
  using Prefix = typename Family::Prefix;
  using Route = RouteOf<Family>;
  using Table = RouteTableOf<Family>;

  // Fills the table if `args` declare routes or sizes; throws ConfigError.
  explicit RouteCommandsOf(const Args& args);

  [[nodiscard]] Table& table() const { return *table_; }
  Value run(const std::string& verb, const Value& args);
  [[nodiscard]] Dict saved_params() const;
  // Creates a table that modules name but none declares. Call after all modules are created.
  void finish_table() const;
  // Takes over the routes that users added, if this pipeline declares another table than the last;
  // the same table is shared, with all live edits.
  void inherit(const RouteCommandsOf& old);

 private:
  void declare(const Args& args);
  void declare_next_hops(const List& list);
  [[nodiscard]] std::vector<Route> declared_routes(const Args& args) const;
  Value add(const Value& args);
  Value erase(const Value& args);
  Value replace(const Value& args);
  Value list(const Value& args) const;
  Value look_up(const Value& args) const;
  Value change_next_hop(const Value& args);
  [[nodiscard]] std::vector<Route> routes_in(const Value& args) const;

  std::string where_;
  std::shared_ptr<Table> table_;
  std::vector<Interface> interfaces_;
  RouteSyntaxOf<Family> syntax_;
  bool is_check_ = false;
  bool is_owner_ = false;
};

using RouteCommands = RouteCommandsOf<Ipv4Family>;
using RouteCommands6 = RouteCommandsOf<Ipv6Family>;

}  // namespace batchplane
