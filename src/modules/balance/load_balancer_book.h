// SPDX-License-Identifier: BSD-3-Clause
// load_balancer_book.h - services and their backends as the control thread keeps them, and what a
// change of backends moves.
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
  uint16_t number = 0;  // 0 until it is booked
  uint32_t n_slots = 0;

  [[nodiscard]] Value value() const;  // as the user writes it
};

struct Service {
  std::string name;
  bool is_ipv6 = false;
  std::array<uint8_t, 16> address{};  // network order; IPv4: the first four
  uint8_t proto = 0;                  // 0 = any
  uint16_t port = 0;                  // 0 = any
  std::vector<Backend> backends;
  Slots slots;  // null without backends

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
// The string under `key`, for commands that name what they change.
[[nodiscard]] const std::string& name_in(const Value& args, const std::string& key,
                                         const std::string& where);
// Refuses keys that are not in `allowed`, and what is no dict.
void check_keys(const Value& value, const std::vector<std::string>& allowed,
                const std::string& where);

// What share of the slots, and so of the flows, a change moved to another backend; and what share
// any method must have moved between tables with as many slots for each backend as these.
struct Moved {
  uint32_t slots = 0;
  double share = 0;
  double min_share = 0;
};
[[nodiscard]] Moved moved_between(const Slots& before, const Slots& after, uint32_t n_slots);

// Every change is checked wholly before the first thing is changed. Owner: control thread.
class LoadBalancerBook {
 public:
  explicit LoadBalancerBook(uint32_t n_slots) : n_slots_(n_slots) {}

  void load(const List& services, const std::string& where, uint32_t n_gates);
  // {service, name, ...}: a backend of that name is changed. Both answer what the change moved.
  Value add_backend(const Value& args, uint32_t n_gates);
  Value delete_backend(const Value& args);
  void add_service(const Value& args, uint32_t n_gates);
  void delete_service(const Value& args);

  [[nodiscard]] const std::vector<Service>& services() const { return services_; }
  [[nodiscard]] uint32_t n_backends() const;
  [[nodiscard]] uint32_t highest_gate() const;
  [[nodiscard]] List list() const;
  [[nodiscard]] LoadBalancerTable build() const;

  // Numbers that came into use since the last call: their counters have to start at 0.
  [[nodiscard]] std::vector<uint16_t> take_fresh_numbers();
  // Backends that `old` has too, of a service of the same name, get the numbers they have there;
  // the others get numbers that none has there.
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
