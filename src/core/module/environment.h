// SPDX-License-Identifier: BSD-3-Clause
// environment.h - what the modules of one pipeline share: interfaces, ports, named tables.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <vector>

#include "base/error.h"
#include "base/net.h"
#include "base/net6.h"
#include "core/packet/port.h"

namespace batchplane {

class Quiescence;

// A router's interface: a port with addresses. Index = position in the pipeline's `interfaces`.
struct Interface {
  std::string name;
  std::string port;
  uint16_t index = 0;
  net::Mac mac{};
  uint16_t mtu_bytes = 1500;             // of the IP packet
  std::vector<net::Prefix4> addresses;   // address kept, e.g. 10.0.0.1/24
  std::vector<net::Prefix6> addresses6;  // likewise; the link-local one is always among them
};

// Built by the control thread before the graph; the list of interfaces is immutable afterwards.
class Environment {
 public:
  std::vector<Interface> interfaces;
  std::map<std::string, std::shared_ptr<Port>> ports;
  uint32_t batch_limit_pkts = 32;
  uint32_t n_workers = 1;
  Quiescence* quiescence = nullptr;  // for live tables
  // Modules are made only to check the pipeline: they open no devices, and no files for writing.
  bool is_check = false;
  // Tables are complete and look-ups work, but devices stay closed: no packet will arrive.
  bool is_offline = false;
  // The same packets are run repeatedly and count as new each time: modules are being timed.
  bool repeats_packets = false;

  // Throws ConfigError that lists the existing names.
  [[nodiscard]] const Interface& interface(const std::string& name) const;
  [[nodiscard]] std::shared_ptr<Port> port(const std::string& name) const;

  // The shared object of type T called `name`, made on first use. Lets several modules use one table ("table:
  // main").
  template <class T, class Make>
  std::shared_ptr<T> shared(const std::string& name, Make make) {
    auto& slot = shared_[{std::type_index(typeid(T)), name}];
    if (slot == nullptr) slot = std::shared_ptr<T>(make());
    return std::static_pointer_cast<T>(slot);
  }
  // The object of that type and name in the environment that this one replaces; nullptr when there was none
  // or it has been destroyed.
  template <class T>
  [[nodiscard]] std::shared_ptr<T> previous(const std::string& name) const {
    const auto it = previous_.find({std::type_index(typeid(T)), name});
    return it == previous_.end() ? nullptr : std::static_pointer_cast<T>(it->second.lock());
  }
  // Before an `apply` builds its modules: lets them find the shared objects of `old` without keeping those
  // alive.
  void carry_over(const Environment& old) {
    previous_.insert(old.shared_.begin(), old.shared_.end());
  }

 private:
  using Key = std::pair<std::type_index, std::string>;

  std::map<Key, std::shared_ptr<void>> shared_;
  std::map<Key, std::weak_ptr<void>> previous_;
};

}  // namespace batchplane
