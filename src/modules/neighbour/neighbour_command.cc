// SPDX-License-Identifier: BSD-3-Clause
// neighbour_command.cc - parses, queues and records edits of the neighbour table.
#include "modules/neighbour/neighbour_command.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/nearest_word.h"
#include "core/module/args.h"

namespace batchplane {

template <class Family>
NeighbourCommandsOf<Family>::NeighbourCommandsOf(const std::vector<Interface>& interfaces,
                                                 const List& statics, const std::string& where)
    : interfaces_(interfaces),
      orders_(std::bit_ceil(kMaxOrders + static_cast<uint32_t>(statics.size()))) {
  for (size_t i = 0; i < statics.size(); ++i) {
    const NeighbourOrder order =
        parse(statics[i], where + ".neighbours[" + std::to_string(i) + "]", true);
    statics_[{order.interface, order.address}] = order.mac;
    push(order);
  }
  declared_ = statics_;
}

template <class Family>
std::optional<uint16_t> NeighbourCommandsOf<Family>::index_here(const NeighbourCommandsOf& there,
                                                                uint16_t index) const {
  const std::string& name = there.interfaces_.at(index).name;
  const auto it = std::ranges::find(interfaces_, name, &Interface::name);
  if (it == interfaces_.end()) return std::nullopt;
  return it->index;
}

template <class Family>
typename NeighbourCommandsOf<Family>::Statics NeighbourCommandsOf<Family>::renumbered(
    const NeighbourCommandsOf& there, const Statics& statics) const {
  Statics found;
  for (const auto& [key, mac] : statics) {
    if (const auto index = index_here(there, key.first)) found[{*index, key.second}] = mac;
  }
  return found;
}

template <class Family>
void NeighbourCommandsOf<Family>::inherit(const NeighbourCommandsOf& old) {
  const Statics old_declared = renumbered(old, old.declared_);
  const Statics old_statics = renumbered(old, old.statics_);
  const bool is_same = declared_ == old_declared;
  statics_ = is_same ? old_statics : declared_;
  std::vector<NeighbourOrder> orders;
  // Orders that the old worker has not carried out.
  for (uint32_t at = old.head_.load(); at != old.tail_.load(); ++at) {
    NeighbourOrder order = old.orders_[at % old.orders_.size()];
    const auto index = index_here(old, order.interface);
    if (!index) continue;
    order.interface = *index;
    orders.push_back(order);
  }
  for (const auto& [key, mac] : old_statics) {
    const auto declared = old_declared.find(key);
    const bool is_live = declared == old_declared.end() || declared->second != mac;
    if (is_live) statics_.emplace(key, mac);
    if (!statics_.contains(key)) {
      orders.push_back({.address = key.second, .interface = key.first, .is_delete = true});
    }
  }
  for (const auto& [key, mac] : statics_) {
    orders.push_back({.address = key.second, .interface = key.first, .mac = mac});
  }
  orders_.assign(std::bit_ceil(kMaxOrders + orders.size()), {});
  head_ = 0;
  tail_ = 0;
  for (const NeighbourOrder& order : orders) push(order);
}

template <class Family>
NeighbourOrderOf<typename Family::Address> NeighbourCommandsOf<Family>::parse(
    const Value& args, const std::string& where, bool has_mac) const {
  if (!args.is_dict()) {
    throw ConfigError("expected a mapping", where,
                      "such as {interface: lan, address: 10.0.0.2, mac: ..}");
  }
  for (const auto& [key, value] : args.as_dict()) {
    if (key != "interface" && key != "address" && (key != "mac" || !has_mac)) {
      throw ConfigError("unknown key '" + key + "'", where);
    }
  }
  NeighbourOrder order{.is_delete = !has_mac};
  std::vector<std::string> names;
  bool is_known = false;
  for (const Interface& interface : interfaces_) {
    names.push_back(interface.name);
    if (args["interface"].is_string() && interface.name == args["interface"].as_string()) {
      order.interface = interface.index;
      is_known = true;
    }
  }
  if (!is_known) {
    const std::string given = args["interface"].is_string() ? args["interface"].as_string() : "";
    const std::string near = nearest_word(given, names);
    throw ConfigError("no interface '" + given + "'", where,
                      near.empty() ? "" : "did you mean '" + near + "'?");
  }
  const auto address =
      args["address"].is_string() ? Family::parse(args["address"].as_string()) : std::nullopt;
  if (!address)
    throw ConfigError(std::string("expected an ") + Family::kName + " address", where + ".address",
                      Family::kAnAddress);
  order.address = *address;
  if (!has_mac) return order;
  const auto mac = args["mac"].is_string() ? net::parse_mac(args["mac"].as_string()) : std::nullopt;
  if (!mac || ((*mac)[0] & 1) != 0) {
    throw ConfigError("expected a unicast MAC address", where + ".mac",
                      "such as 02:00:00:00:00:01");
  }
  order.mac = *mac;
  return order;
}

template <class Family>
void NeighbourCommandsOf<Family>::push(const NeighbourOrder& order) {
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  if (tail - head_.load(std::memory_order_acquire) == orders_.size()) {
    throw ConfigError("too many edits wait for the worker", "neighbour", "try again in a moment");
  }
  orders_[tail % orders_.size()] = order;
  tail_.store(tail + 1, std::memory_order_release);
}

template <class Family>
Value NeighbourCommandsOf<Family>::run(const std::string& verb, const Value& args) {
  if (verb != "add" && verb != "delete") {
    throw ConfigError("a neighbour module has no command '" + verb + "'", "",
                      "it has add, delete, list");
  }
  const NeighbourOrder order = parse(args, verb, verb == "add");
  push(order);
  if (order.is_delete) {
    statics_.erase({order.interface, order.address});
  } else {
    statics_[{order.interface, order.address}] = order.mac;
  }
  return Dict{};
}

template <class Family>
Value NeighbourCommandsOf<Family>::format(const std::vector<NeighbourView>& neighbours) const {
  List list;
  for (const NeighbourView& neighbour : neighbours) {
    Dict entry{{"interface", interfaces_.at(neighbour.interface).name},
               {"address", Family::format(neighbour.address)},
               {"state", neighbour_state_name(neighbour.state)}};
    if (neighbour.state >= NeighbourState::kReachable)
      entry["mac"] = net::format_mac(neighbour.mac);
    list.push_back(std::move(entry));
  }
  return Dict{{"neighbours", std::move(list)}};
}

template <class Family>
Dict NeighbourCommandsOf<Family>::saved_params() const {
  List list;
  for (const auto& [key, mac] : statics_) {
    list.push_back(Dict{{"interface", interfaces_.at(key.first).name},
                        {"address", Family::format(key.second)},
                        {"mac", net::format_mac(mac)}});
  }
  return {{"neighbours", std::move(list)}};
}

template class NeighbourCommandsOf<Ipv4Family>;
template class NeighbourCommandsOf<Ipv6Family>;

}  // namespace batchplane
