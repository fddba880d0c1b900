// SPDX-License-Identifier: BSD-3-Clause
// route_table.h - all routes of one table with their sources and metrics, and the Fib that workers
// read.
//
// A RouteTable is a named table in one pipeline; its contents may outlive the pipeline. An `apply`
// that declares the same table again shares the contents, which takes no time and no memory. If it
// declares another table, that is filled beside the old one, which is in use until the graphs are
// swapped.
// The control thread owns the routes; only the best route of each prefix is written to the two Fib
// instances behind LiveTable. The default route is not a Fib entry but the target of the miss ID:
// changing it is one store, where a /0 in a DIR-24-8 table would write 16 M entries.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/value.h"
#include "core/module/live_table.h"
#include "modules/route/next_hop.h"
#include "modules/route/route_family.h"

namespace batchplane {

// In order of preference among equal metrics.
enum class RouteSource : uint8_t { kLocal, kConnected, kUser, kStatic };
[[nodiscard]] const char* route_source_name(RouteSource source);
[[nodiscard]] std::optional<RouteSource> parse_route_source(const std::string& text);

// One route to a prefix; (source, metric) tells the alternatives for a prefix apart.
struct RouteWay {
  uint32_t next_hop = 0;
  uint32_t metric = 0;
  RouteSource source = RouteSource::kStatic;
  bool is_bulk = false;  // came from a file or generator that the pipeline names

  [[nodiscard]] bool is_better_than(const RouteWay& other) const {
    return metric != other.metric ? metric < other.metric : source < other.source;
  }
  bool operator==(const RouteWay&) const = default;
};

template <class Family>
struct RouteOf {
  typename Family::Prefix prefix;
  RouteWay way;
};

struct RouteTableSize {
  uint32_t max_prefixes = 16384;
  uint32_t max_long_blocks = 0;
  uint32_t max_next_hops = 4096;
  uint32_t next_hop_bytes = 2;
  bool operator==(const RouteTableSize&) const = default;
};

// fib(), hops() const: workers. Everything else: control thread, one caller at a time.
template <class Family>
class RouteTableOf {
 public:
  using Address = typename Family::Address;
  using Prefix = typename Family::Prefix;
  using Fib = typename Family::Fib;
  using Route = RouteOf<Family>;
  using Ways = std::vector<RouteWay>;

  // `previous`: the table of the same name in the pipeline that is being replaced, if any.
  RouteTableOf(std::string name, const Quiescence* quiescence,
               const RouteTableOf* previous = nullptr);

  // Creates the Fibs. Several modules share a table by name and are built in any order, so the
  // sizes are those of the module that declares them. Throws if it was built with other sizes. With
  // is_check, routes are only validated: no Fib is created, and workers must not look up.
  void build(const RouteTableSize& size, bool is_check = false);
  // Takes over the contents of the previous table, live edits included, if it came from the same
  // declaration; otherwise does nothing.
  bool resume(const Dict& declaration);
  [[nodiscard]] bool is_built() const { return hops_ != nullptr; }
  [[nodiscard]] bool shares_with(const RouteTableOf& other) const { return body_ == other.body_; }

  // Load once per batch.
  [[nodiscard]] const Fib& fib() const noexcept { return live_->read(); }
  [[nodiscard]] const NextHops& hops() const noexcept { return *hops_; }
  [[nodiscard]] NextHops& hops() noexcept { return *hops_; }

  // Each call is one step: workers see it when it returns, or it throws ConfigError and nothing has
  // changed.
  void add(const std::vector<Route>& routes);
  // Removes the matching routes to `prefix` and returns how many. Interface routes are removed only
  // if their source is named.
  uint32_t erase(const Prefix& prefix, std::optional<RouteSource> source,
                 std::optional<uint32_t> metric);
  uint32_t erase(const std::vector<Prefix>& prefixes);
  // Replaces all routes from the given sources by `routes`. Writes only the differences.
  void replace(const std::vector<RouteSource>& sources, const std::vector<Route>& routes);

  [[nodiscard]] const std::map<Prefix, Ways>& routes() const { return body_->routes; }
  [[nodiscard]] const RouteWay* best(const Prefix& prefix) const;
  // Longest-prefix match on the control side.
  [[nodiscard]] std::optional<Route> lookup(const Address& address) const;
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const RouteTableSize& size() const { return body_->size; }
  [[nodiscard]] uint64_t edits() const { return body_->edits; }
  [[nodiscard]] Dict show() const;

  // A lookup module can only use the gates that its graph node has; edits that name others are
  // refused.
  void limit_gates(const void* module, uint32_t n_gates) { body_->gate_limits[module] = n_gates; }
  void forget_module(const void* module) { body_->gate_limits.erase(module); }
  void check_gate(uint32_t gate) const;

  // Only one module of a pipeline fills the table; throws for a second one.
  void claim(const std::string& module);
  // What the table was filled from, for `save` and for the next `apply`.
  struct Origin {
    Dict declaration;  // the parameters that were read
    std::string file;
    Dict synthetic;
    std::vector<Prefix> bulk;  // prefixes from file and synthetic
  };
  [[nodiscard]] const Origin& origin() const { return body_->origin; }
  void set_origin(Origin origin) { body_->origin = std::move(origin); }

 private:
  struct Body {
    RouteTableSize size;
    std::unique_ptr<NextHops> hops;
    std::unique_ptr<LiveTable<Fib>> live;
    std::map<Prefix, Ways> routes;
    std::map<const void*, uint32_t> gate_limits;
    Origin origin;
    uint64_t edits = 0;
  };
  struct FibEdit {
    Prefix prefix;
    std::optional<uint32_t> before;
    std::optional<uint32_t> after;
  };

  // Replaces the routes of the given prefixes. All or nothing.
  void commit(std::map<Prefix, Ways> staged);
  [[nodiscard]] std::vector<FibEdit> differences(const std::map<Prefix, Ways>& staged) const;
  void write(std::vector<FibEdit> edits);
  Ways& stage(std::map<Prefix, Ways>& staged, const Prefix& prefix) const;

  void look_at_body();

  std::string name_;
  const Quiescence* quiescence_;
  std::shared_ptr<Body> body_ = std::make_shared<Body>();
  // Pointers into the body, for workers.
  NextHops* hops_ = nullptr;
  LiveTable<Fib>* live_ = nullptr;
  std::weak_ptr<Body> previous_;
  std::string claimed_by_;
};

extern template class RouteTableOf<Ipv4Family>;
extern template class RouteTableOf<Ipv6Family>;

using Route = RouteOf<Ipv4Family>;
using RouteTable = RouteTableOf<Ipv4Family>;
using Route6 = RouteOf<Ipv6Family>;
using RouteTable6 = RouteTableOf<Ipv6Family>;

}  // namespace batchplane
