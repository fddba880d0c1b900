// SPDX-License-Identifier: BSD-3-Clause
// load_balancer_book.h - the control thread's record of services and backends, and the share of
// flows that a change of backends moves.
#pragma once

#include <string>
#include <vector>

#include "base/value.h"
#include "modules/balance/load_balancer_table.h"

namespace batchplane {

struct Backend {
  std::string name;
  uint32_t weight = 1;
  BackendAction action;
  uint16_t number = 0;  // 0: not assigned yet
  uint32_t n_slots = 0;

  [[nodiscard]] Value value() const;  // in the form that the user writes
};

struct Service {
  std::string name;
  bool is_ipv6 = false;
  std::array<uint8_t, 16> address{};  // network order; IPv4: the first 4 bytes
  uint8_t proto = 0;                  // 0 = any
  uint16_t port = 0;                  // 0 = any
  std::vector<Backend> backends;
  Slots slots;  // null if the service has no backends

  [[nodiscard]] std::string address_text() const;
  [[nodiscard]] Value value() const;
  [[nodiscard]] bool has_same_key(const Service& other) const {
    return is_ipv6 == other.is_ipv6 && address == other.address && proto == other.proto &&
           port == other.port;
  }
};

// Throw ConfigError. Gates are 0..n_gates-1.
[[nodiscard]] Backend parse_backend(const Value& value, const std::string& where, uint32_t n_gates);
[[nodiscard]] Service parse_service(const Value& value, const std::string& where, uint32_t n_gates);
// The string under `key`: a service or backend name in a command.
[[nodiscard]] const std::string& name_in(const Value& args, const std::string& key,
                                         const std::string& where);
// Throws unless `value` is a dict with no keys but `allowed`.
void check_keys(const Value& value, const std::vector<std::string>& allowed,
                const std::string& where);

// `share`: the share of slots, and so of flows, that a change moved to another backend.
// `min_share`: the least that any method must move to get from the old slot counts per backend to
// the new ones.
struct Moved {
  uint32_t slots = 0;
  double share = 0;
  double min_share = 0;
};
[[nodiscard]] Moved moved_between(const Slots& before, const Slots& after, uint32_t n_slots);

// Every change is checked completely before anything is modified. Owner: control thread.
class LoadBalancerBook {
 public:
  explicit LoadBalancerBook(uint32_t n_slots) : n_slots_(n_slots) {}

  void load(const List& services, const std::string& where, uint32_t n_gates);
  // Takes {service, name, ...}; changes the backend if the name exists. add and delete both return
  // how much the change moved.
  Value add_backend(const Value& args, uint32_t n_gates);
  Value delete_backend(const Value& args);
  void add_service(const Value& args, uint32_t n_gates);
  void delete_service(const Value& args);

  [[nodiscard]] const std::vector<Service>& services() const { return services_; }
  [[nodiscard]] uint32_t n_backends() const;
  [[nodiscard]] uint32_t highest_gate() const;
  [[nodiscard]] List list() const;
  [[nodiscard]] LoadBalancerTable build() const;

  // Numbers assigned since the last call; the caller sets their counters to 0.
  [[nodiscard]] std::vector<uint16_t> take_fresh_numbers();
  // A backend that `old` also has, in a service of the same name, gets its number from there; all
  // other backends get numbers that `old` does not use.
  void renumber_as(const LoadBalancerBook& old);

 private:
  Service& find(const std::string& name, const std::string& where);
  Value exchange(Service& service, std::vector<Backend> next);
  void fill_slots(Service& service) const;
  void number_new_ones(Service& service, std::vector<bool>& is_used);
  [[nodiscard]] std::vector<bool> numbers_in_use() const;
  void check_new(const Service& service, const std::string& where) const;
  void check_size(const Service& service, size_t n_backends, const std::string& where) const;

  const uint32_t n_slots_;
  std::vector<Service> services_;
  std::vector<uint16_t> fresh_;
};

}  // namespace batchplane
