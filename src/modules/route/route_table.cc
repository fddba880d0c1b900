// SPDX-License-Identifier: BSD-3-Clause
// route_table.cc - stages routes by prefix, compares them with the current ones, and writes them in
// one step.
#include "modules/route/route_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"

namespace batchplane {
namespace {

constexpr const char* kSourceNames[] = {"local", "connected", "user", "static"};

const RouteWay* best_of(const std::vector<RouteWay>& ways) {
  const RouteWay* best = nullptr;
  for (const RouteWay& way : ways) {
    if (best == nullptr || way.is_better_than(*best)) best = &way;
  }
  return best;
}

FibConfig fib_config(const RouteTableSize& size) {
  return {.max_prefixes = size.max_prefixes,
          .max_tbl8 = size.max_long_blocks,
          .next_hop_bytes = size.next_hop_bytes,
          .miss_id = size.max_next_hops};
}

}  // namespace

const char* route_source_name(RouteSource source) {
  return kSourceNames[static_cast<uint32_t>(source)];
}

std::optional<RouteSource> parse_route_source(const std::string& text) {
  const auto it = std::ranges::find(kSourceNames, text);
  if (it == std::end(kSourceNames)) return std::nullopt;
  return static_cast<RouteSource>(it - std::begin(kSourceNames));
}

template <class Family>
RouteTableOf<Family>::RouteTableOf(std::string name, const Quiescence* quiescence,
                                   const RouteTableOf* previous)
    : name_(std::move(name)), quiescence_(quiescence) {
  if (previous != nullptr && previous->is_built()) previous_ = previous->body_;
}

template <class Family>
void RouteTableOf<Family>::look_at_body() {
  hops_ = body_->hops.get();
  live_ = body_->live.get();
}

template <class Family>
bool RouteTableOf<Family>::resume(const Dict& declaration) {
  const std::shared_ptr<Body> previous = previous_.lock();
  if (is_built() || previous == nullptr || previous->origin.declaration != declaration) {
    return false;
  }
  body_ = previous;
  look_at_body();
  return true;
}

template <class Family>
void RouteTableOf<Family>::build(const RouteTableSize& size, bool is_check) {
  if (is_built()) {
    if (size == body_->size) return;
    throw ConfigError("the size of table '" + name_ + "' cannot change while it is in use", "",
                      "keep its sizes, or stop and start with the new ones");
  }
  const FibConfig config = fib_config(size);
  if (config.miss_id > config.max_id()) {
    throw ConfigError("max_next_hops " + std::to_string(size.max_next_hops) + " does not fit " +
                          std::to_string(size.next_hop_bytes) + "-byte entries",
                      "",
                      "use at most " + std::to_string(config.max_id()) + ", or next_hop_bytes: 4");
  }
  if (!is_check) {
    auto first = std::make_unique<Fib>(config);
    auto second = std::make_unique<Fib>(config);
    body_->live =
        std::make_unique<LiveTable<Fib>>(std::move(first), std::move(second), quiescence_);
  }
  body_->hops = std::make_unique<NextHops>(size.max_next_hops, quiescence_);
  if (const auto previous = previous_.lock()) body_->hops->keep_ids_of(*previous->hops);
  body_->size = size;
  look_at_body();
}

template <class Family>
void RouteTableOf<Family>::check_gate(uint32_t gate) const {
  for (const auto& [module, n_gates] : body_->gate_limits) {
    if (gate < n_gates) continue;
    throw ConfigError("gate " + std::to_string(gate) + " is not connected (gates 0 .. " +
                          std::to_string(n_gates - 1) + " are)",
                      "", "connect it in the pipeline and apply, or use another gate");
  }
}

template <class Family>
void RouteTableOf<Family>::claim(const std::string& module) {
  if (!claimed_by_.empty() && claimed_by_ != module) {
    throw ConfigError(
        "table '" + name_ + "' gets its routes from module '" + claimed_by_ + "' already", "",
        "give routes and sizes in one module; others only name the table");
  }
  claimed_by_ = module;
}

template <class Family>
typename RouteTableOf<Family>::Ways& RouteTableOf<Family>::stage(std::map<Prefix, Ways>& staged,
                                                                 const Prefix& prefix) const {
  const auto [it, is_new] = staged.try_emplace(prefix);
  if (is_new) {
    const auto known = body_->routes.find(prefix);
    if (known != body_->routes.end()) it->second = known->second;
  }
  return it->second;
}

namespace {
void put(std::vector<RouteWay>& ways, const RouteWay& way) {
  for (RouteWay& known : ways) {
    if (known.source == way.source && known.metric == way.metric) {
      known = way;
      return;
    }
  }
  ways.push_back(way);
}
}  // namespace

template <class Family>
void RouteTableOf<Family>::add(const std::vector<Route>& routes) {
  std::map<Prefix, Ways> staged;
  for (const Route& route : routes) put(stage(staged, route.prefix), route.way);
  commit(std::move(staged));
}

template <class Family>
uint32_t RouteTableOf<Family>::erase(const Prefix& prefix, std::optional<RouteSource> source,
                                     std::optional<uint32_t> metric) {
  std::map<Prefix, Ways> staged;
  const auto n = std::erase_if(stage(staged, prefix), [&](const RouteWay& way) {
    const bool is_edited = way.source == RouteSource::kUser || way.source == RouteSource::kStatic;
    return (source ? way.source == *source : is_edited) && (!metric || way.metric == *metric);
  });
  if (n != 0) commit(std::move(staged));
  return static_cast<uint32_t>(n);
}

template <class Family>
uint32_t RouteTableOf<Family>::erase(const std::vector<Prefix>& prefixes) {
  std::map<Prefix, Ways> staged;
  uint32_t n = 0;
  for (const Prefix& prefix : prefixes) {
    n += static_cast<uint32_t>(std::erase_if(stage(staged, prefix), [](const RouteWay& way) {
      return way.source == RouteSource::kUser || way.source == RouteSource::kStatic;
    }));
  }
  commit(std::move(staged));
  return n;
}

template <class Family>
void RouteTableOf<Family>::replace(const std::vector<RouteSource>& sources,
                                   const std::vector<Route>& routes) {
  std::map<Prefix, Ways> staged;
  for (const auto& [prefix, ways] : body_->routes) {
    Ways& kept = staged.emplace_hint(staged.end(), prefix, ways)->second;
    std::erase_if(kept, [&](const RouteWay& way) {
      return std::ranges::find(sources, way.source) != sources.end();
    });
  }
  for (const Route& route : routes) put(staged[route.prefix], route.way);
  commit(std::move(staged));
}

template <class Family>
std::vector<typename RouteTableOf<Family>::FibEdit> RouteTableOf<Family>::differences(
    const std::map<Prefix, Ways>& staged) const {
  std::vector<FibEdit> edits;
  for (const auto& [prefix, ways] : staged) {
    if (prefix.length == 0) continue;
    FibEdit edit{prefix, std::nullopt, std::nullopt};
    if (const RouteWay* old = best(prefix)) edit.before = old->next_hop;
    if (const RouteWay* next = best_of(ways)) edit.after = next->next_hop;
    if (edit.before != edit.after) edits.push_back(edit);
  }
  // Deletions first to make room; short prefixes before long ones that would split their range.
  std::ranges::sort(edits, [](const FibEdit& a, const FibEdit& b) {
    if (a.after.has_value() != b.after.has_value()) return !a.after.has_value();
    if (!a.after.has_value()) return b.prefix.length < a.prefix.length;
    return a.prefix.length < b.prefix.length;
  });
  return edits;
}

template <class Family>
void RouteTableOf<Family>::write(std::vector<FibEdit> edits) {
  if (edits.empty() || live_ == nullptr) return;
  const auto put_id = [](Fib& fib, const Prefix& prefix, std::optional<uint32_t> id) {
    if (id) {
      fib.set(prefix, *id);
    } else {
      fib.erase(prefix);
    }
  };
  live_->edit([&](Fib& fib) {
    size_t done = 0;
    try {
      for (; done < edits.size(); ++done) put_id(fib, edits[done].prefix, edits[done].after);
    } catch (const ConfigError&) {
      while (done-- > 0) put_id(fib, edits[done].prefix, edits[done].before);
      throw;
    }
  });
}

template <class Family>
void RouteTableOf<Family>::commit(std::map<Prefix, Ways> staged) {
  for (const auto& [prefix, ways] : staged) {
    for (const RouteWay& way : ways) hops_->retain(way.next_hop);
  }
  try {
    write(differences(staged));
  } catch (...) {
    for (const auto& [prefix, ways] : staged) {
      for (const RouteWay& way : ways) hops_->release(way.next_hop);
    }
    throw;
  }
  const auto it = staged.find(Prefix{});
  if (it != staged.end()) {
    const RouteWay* way = best_of(it->second);
    hops_->set_default(way == nullptr ? hops_->miss_id() : way->next_hop);
  }
  for (auto& [prefix, ways] : staged) {
    Ways& known = body_->routes[prefix];
    std::swap(known, ways);
    if (known.empty()) body_->routes.erase(prefix);
  }
  for (const auto& [prefix, ways] : staged) {
    for (const RouteWay& way : ways) hops_->release(way.next_hop);
  }
  ++body_->edits;
}

template <class Family>
const RouteWay* RouteTableOf<Family>::best(const Prefix& prefix) const {
  const auto it = body_->routes.find(prefix);
  return it == body_->routes.end() ? nullptr : best_of(it->second);
}

template <class Family>
std::optional<RouteOf<Family>> RouteTableOf<Family>::lookup(const Address& address) const {
  for (int length = Family::kBits; length >= 0; --length) {
    const auto bits = static_cast<uint8_t>(length);
    const Prefix prefix{address & Family::mask(bits), bits};
    if (const RouteWay* way = best(prefix)) return Route{prefix, *way};
  }
  return std::nullopt;
}

template <class Family>
Dict RouteTableOf<Family>::show() const {
  uint64_t ways = 0;
  for (const auto& [prefix, all] : body_->routes) ways += all.size();
  return {{"table", name_},
          {"prefixes", static_cast<uint64_t>(body_->routes.size())},
          {"routes", ways},
          {"max_prefixes", body_->size.max_prefixes},
          {"next_hops", hops_->size()},
          {"max_next_hops", body_->size.max_next_hops},
          {"memory_bytes", 2 * Fib::memory_bytes(fib_config(body_->size))},
          {"lookup_path", live_ == nullptr ? "none" : live_->current().lookup_path()},
          {"edits", body_->edits}};
}

template class RouteTableOf<Ipv4Family>;
template class RouteTableOf<Ipv6Family>;

}  // namespace batchplane
