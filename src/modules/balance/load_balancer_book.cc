// SPDX-License-Identifier: BSD-3-Clause
// load_balancer_book.cc - changes of services and backends, checked completely before they are
// made.
#include "modules/balance/load_balancer_book.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "modules/balance/maglev.h"

namespace batchplane {

Moved moved_between(const Slots& before, const Slots& after, uint32_t n_slots) {
  Moved moved;
  if (before == after) return moved;
  if (before == nullptr || after == nullptr) return {n_slots, 1, 1};
  std::vector<int64_t> gain(kBackendNumbers);
  for (uint32_t i = 0; i < n_slots; ++i) {
    --gain[(*before)[i]];
    ++gain[(*after)[i]];
    moved.slots += (*before)[i] != (*after)[i] ? 1 : 0;
  }
  int64_t least = 0;
  for (const int64_t slots : gain) least += std::max<int64_t>(slots, 0);
  moved.share = static_cast<double>(moved.slots) / n_slots;
  moved.min_share = static_cast<double>(least) / n_slots;
  return moved;
}

void LoadBalancerBook::load(const List& services, const std::string& where, uint32_t n_gates) {
  for (size_t i = 0; i < services.size(); ++i) {
    const std::string at = where + ".services[" + std::to_string(i) + "]";
    Service service = parse_service(services[i], at, n_gates);
    check_new(service, at);
    services_.push_back(std::move(service));
  }
  std::vector<bool> is_used = numbers_in_use();
  for (Service& service : services_) {
    number_new_ones(service, is_used);
    fill_slots(service);
  }
}

Value LoadBalancerBook::add_backend(const Value& args, uint32_t n_gates) {
  check_keys(args, {"service", "name", "weight", "gate", "mac", "tunnel_id"}, "add");
  Service& service = find(name_in(args, "service", "add"), "add.service");
  Dict fields = args.as_dict();
  fields.erase("service");
  Backend backend = parse_backend(fields, "add", n_gates);
  std::vector<Backend> next = service.backends;
  const auto it = std::ranges::find(next, backend.name, &Backend::name);
  if (it != next.end()) {
    backend.number = it->number;
    *it = std::move(backend);
  } else {
    check_size(service, next.size() + 1, "add");
    next.push_back(std::move(backend));
  }
  return exchange(service, std::move(next));
}

Value LoadBalancerBook::delete_backend(const Value& args) {
  check_keys(args, {"service", "name"}, "delete");
  Service& service = find(name_in(args, "service", "delete"), "delete.service");
  const std::string& name = name_in(args, "name", "delete");
  std::vector<Backend> next = service.backends;
  if (std::erase_if(next, [&](const Backend& backend) { return backend.name == name; }) == 0) {
    throw ConfigError("service '" + service.name + "' has no backend '" + name + "'", "delete.name",
                      "the command list shows what there is");
  }
  return exchange(service, std::move(next));
}

void LoadBalancerBook::add_service(const Value& args, uint32_t n_gates) {
  Service service = parse_service(args, "add_service", n_gates);
  check_new(service, "add_service");
  std::vector<bool> is_used = numbers_in_use();
  number_new_ones(service, is_used);
  fill_slots(service);
  services_.push_back(std::move(service));
}

void LoadBalancerBook::delete_service(const Value& args) {
  check_keys(args, {"name"}, "delete_service");
  const Service& service = find(name_in(args, "name", "delete_service"), "delete_service.name");
  services_.erase(services_.begin() + (&service - services_.data()));
}

uint32_t LoadBalancerBook::n_backends() const {
  size_t n = 0;
  for (const Service& service : services_) n += service.backends.size();
  return static_cast<uint32_t>(n);
}

uint32_t LoadBalancerBook::highest_gate() const {
  uint32_t highest = 0;
  for (const Service& service : services_) {
    for (const Backend& backend : service.backends) {
      highest = std::max<uint32_t>(highest, backend.action.gate);
    }
  }
  return highest;
}

List LoadBalancerBook::list() const {
  List all;
  for (const Service& service : services_) all.push_back(service.value());
  return all;
}

LoadBalancerTable LoadBalancerBook::build() const {
  LoadBalancerTable table;
  for (const Service& service : services_) {
    for (const Backend& backend : service.backends) {
      table.set_action(backend.number, backend.action);
    }
    const uint32_t port_raw = net::be16(service.port);
    if (service.is_ipv6) {
      table.add_service(service_key6(service.address.data(), service.proto, port_raw),
                        service.slots);
    } else {
      uint32_t address_raw;
      std::memcpy(&address_raw, service.address.data(), 4);
      table.add_service(service_key4(address_raw, service.proto, port_raw), service.slots);
    }
  }
  return table;
}

std::vector<uint16_t> LoadBalancerBook::take_fresh_numbers() { return std::exchange(fresh_, {}); }

void LoadBalancerBook::renumber_as(const LoadBalancerBook& old) {
  std::map<std::pair<std::string, std::string>, uint16_t> known;
  for (const Service& service : old.services_) {
    for (const Backend& backend : service.backends) {
      known[{service.name, backend.name}] = backend.number;
    }
  }
  fresh_.clear();
  std::vector<bool> is_used = old.numbers_in_use();
  for (Service& service : services_) {
    for (Backend& backend : service.backends) {
      const auto it = known.find({service.name, backend.name});
      backend.number = it == known.end() ? uint16_t{0} : it->second;
    }
    number_new_ones(service, is_used);
    fill_slots(service);
  }
}

Service& LoadBalancerBook::find(const std::string& name, const std::string& where) {
  const auto it = std::ranges::find(services_, name, &Service::name);
  if (it != services_.end()) return *it;
  throw ConfigError("there is no service '" + name + "'", where,
                    "the command list shows what there is");
}

Value LoadBalancerBook::exchange(Service& service, std::vector<Backend> next) {
  const Slots before = service.slots;
  service.backends = std::move(next);
  std::vector<bool> is_used = numbers_in_use();
  number_new_ones(service, is_used);
  fill_slots(service);
  const Moved moved = moved_between(before, service.slots, n_slots_);
  return Dict{{"service", service.name},
              {"backends", static_cast<int64_t>(service.backends.size())},
              {"moved_slots", moved.slots},
              {"moved_share", moved.share},
              {"min_share", moved.min_share}};
}

void LoadBalancerBook::fill_slots(Service& service) const {
  std::vector<MaglevBackend> backends;
  for (const Backend& backend : service.backends)
    backends.push_back({backend.name, backend.weight});
  std::vector<uint16_t> slots = maglev_slots(backends, n_slots_);
  for (Backend& backend : service.backends) backend.n_slots = 0;
  for (uint16_t& slot : slots) {
    Backend& backend = service.backends[slot];
    ++backend.n_slots;
    slot = backend.number;
  }
  service.slots =
      slots.empty() ? nullptr : std::make_shared<const std::vector<uint16_t>>(std::move(slots));
}

// Assigns the lowest free numbers, so that the counters in use stay close together.
void LoadBalancerBook::number_new_ones(Service& service, std::vector<bool>& is_used) {
  auto next = is_used.begin();
  for (Backend& backend : service.backends) {
    if (backend.number != 0) continue;
    next = std::find(next, is_used.end(), false);
    *next = true;
    backend.number = static_cast<uint16_t>(next - is_used.begin());
    fresh_.push_back(backend.number);
  }
}

std::vector<bool> LoadBalancerBook::numbers_in_use() const {
  std::vector<bool> is_used(kBackendNumbers);
  std::fill_n(is_used.begin(), kFirstBackend, true);
  for (const Service& service : services_) {
    for (const Backend& backend : service.backends) is_used[backend.number] = true;
  }
  return is_used;
}

void LoadBalancerBook::check_new(const Service& service, const std::string& where) const {
  if (services_.size() == kMaxServices) {
    throw ConfigError("there are " + std::to_string(kMaxServices) + " services already", where,
                      "no more fit into one load balancer");
  }
  for (const Service& other : services_) {
    if (other.name == service.name) {
      throw ConfigError("another service is called '" + service.name + "'", where + ".name",
                        "a name stands for one service");
    }
    if (other.has_same_key(service)) {
      throw ConfigError("service '" + other.name + "' has the same address, protocol and port",
                        where, "keep one of them");
    }
  }
  check_size(service, service.backends.size(), where);
}

void LoadBalancerBook::check_size(const Service& service, size_t n_backends,
                                  const std::string& where) const {
  if (n_backends > n_slots_) {
    throw ConfigError(
        std::to_string(n_backends) + " backends for " + std::to_string(n_slots_) + " slots",
        where + ".backends", "give table_slots at least 100 times as many");
  }
  size_t n_all = n_backends;
  for (const Service& other : services_) {
    if (other.name != service.name) n_all += other.backends.size();
  }
  if (n_all > kMaxBackends) {
    throw ConfigError("there would be " + std::to_string(n_all) + " backends", where,
                      "at most " + std::to_string(kMaxBackends) + " fit, of all services together");
  }
}

}  // namespace batchplane
