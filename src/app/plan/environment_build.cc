// SPDX-License-Identifier: BSD-3-Clause
// environment_build.cc - makes or takes over ports, resolves interfaces.
#include "app/plan/environment_build.h"

#include <algorithm>

#include "app/wire/messages.h"
#include "core/module/kind.h"
#include "ports/port_kinds.h"
#include "spec/check.h"
#include "traffic/generator.h"

namespace batchplane::app {
namespace {

// Stands in for a port while a pipeline is checked, or while packets are walked through its modules.
class PlannedPort final : public Port {
 public:
  // `like`: the port itself, if it could be made.
  explicit PlannedPort(std::shared_ptr<Port> like = nullptr) : like_(std::move(like)) {}

  uint32_t rx_burst(Packet**, uint32_t, uint64_t) noexcept override { return 0; }
  uint32_t tx_burst(Packet** pkts, uint32_t n) noexcept override {
    PacketPool::free_bulk(pkts, n);
    return n;
  }
  [[nodiscard]] net::Mac mac() const override { return like_ ? like_->mac() : Port::mac(); }
  [[nodiscard]] uint32_t max_frame_bytes() const override {
    return like_ ? like_->max_frame_bytes() : Port::max_frame_bytes();
  }
  [[nodiscard]] uint32_t mtu_bytes() const override {
    return like_ ? like_->mtu_bytes() : Port::mtu_bytes();
  }
  [[nodiscard]] PortStats stats() const override { return {}; }
  // Without the device the number of its descriptors is unknown; this is a usual one.
  [[nodiscard]] uint64_t max_held_pkts() const override {
    return like_ ? like_->max_held_pkts() : 4096;
  }

 private:
  std::shared_ptr<Port> like_;
};

std::shared_ptr<Port> running_port(const PortSpec& port, const Running& running) {
  if (running.spec == nullptr || running.env == nullptr) return nullptr;
  const auto known = std::ranges::find(running.spec->ports, port.name, &PortSpec::name);
  if (known == running.spec->ports.end() || known->kind != port.kind ||
      known->params != port.params) {
    return nullptr;
  }
  const auto it = running.env->ports.find(port.name);
  return it == running.env->ports.end() ? nullptr : it->second;
}

// Memory ports are made for a check too: they cost nothing and reveal more mistakes.
bool is_memory(const std::string& kind) {
  const PortKindInfo* const info = find_port_kind(kind);
  return info != nullptr && info->is_memory;
}

std::shared_ptr<Port> make_one(const PortSpec& port, PortsAre ports_are, Environment& env,
                               const std::string& where, std::vector<ConfigError>& errors) {
  if (ports_are != PortsAre::kReal && !is_memory(port.kind)) {
    return std::make_shared<PlannedPort>();
  }
  try {
    auto made = make_port(port, env, where);
    // A ring that nobody polls would soon be full.
    if (ports_are == PortsAre::kAbsent) return std::make_shared<PlannedPort>(std::move(made));
    return made;
  } catch (const ConfigError& e) {
    errors.emplace_back(e.what(), e.where().empty() ? where : e.where(), e.fix());
    return std::make_shared<PlannedPort>();
  }
}

net::Mac mac_of(const InterfaceSpec& spec, const std::string& where, const Port* port,
                std::vector<ConfigError>& errors) {
  if (spec.mac.empty()) return port == nullptr ? net::Mac{} : port->mac();
  const auto mac = net::parse_mac(spec.mac);
  if (mac) return *mac;
  errors.emplace_back("'" + spec.mac + "' is no MAC address", where + ".mac",
                      "for example 02:00:00:00:00:01");
  return {};
}

void add_addresses(const InterfaceSpec& spec, const std::string& where, Interface& interface,
                   std::vector<ConfigError>& errors) {
  for (size_t i = 0; i < spec.addresses.size(); ++i) {
    const std::string& text = spec.addresses[i];
    const auto parsed4 = net::parse_interface_address(text);
    const auto parsed6 = net::parse_interface_address6(text);
    if (parsed4) {
      interface.addresses.push_back(*parsed4);
    } else if (parsed6 && !parsed6->address.is_multicast() && !parsed6->address.is_unspecified()) {
      interface.addresses6.push_back(*parsed6);
    } else {
      errors.emplace_back("'" + text + "' is no address of an interface",
                          where + ".addresses[" + std::to_string(i) + "]",
                          "for example 10.0.0.1/24 or 2001:db8::1/64");
    }
  }
  // RFC 4291, 2.8: every interface has a link-local address.
  const bool has_link_local = std::ranges::any_of(
      interface.addresses6, &net::Address6::is_link_local, &net::Prefix6::address);
  if (!has_link_local) interface.addresses6.push_back({net::link_local_of(interface.mac), 64});
}

void add_interfaces(const PipelineSpec& spec, Environment& env, std::vector<ConfigError>& errors) {
  for (size_t i = 0; i < spec.interfaces.size(); ++i) {
    const InterfaceSpec& given = spec.interfaces[i];
    const std::string where = spec.where("interfaces[" + std::to_string(i) + "]");
    const auto known = env.ports.find(given.port);
    const Port* const port = known == env.ports.end() ? nullptr : known->second.get();
    Interface interface;
    interface.name = given.name;
    interface.port = given.port;
    interface.index = static_cast<uint16_t>(i);
    interface.mac = mac_of(given, where, port, errors);
    interface.mtu_bytes = static_cast<uint16_t>(given.mtu_bytes);
    add_addresses(given, where, interface, errors);
    env.interfaces.push_back(std::move(interface));
  }
}

}  // namespace

Kinds program_kinds() {
  Kinds kinds = module_kind_facts();
  kinds.ports = port_kind_facts();
  kinds.generator = traffic::generator_params();
  return kinds;
}

List warnings_value(const PipelineSpec& spec) {
  return errors_value(warnings_of(spec, module_kind_facts()), spec.source_map);
}

std::unique_ptr<Environment> build_environment(const PipelineSpec& spec, PortsAre ports_are,
                                               const Running& running,
                                               std::vector<ConfigError>& errors) {
  auto env = std::make_unique<Environment>();
  env->batch_limit_pkts = spec.engine.batch_pkts;
  const Kinds kinds = program_kinds();
  Mistakes mistakes{errors, spec.source_map};
  for (const PortSpec& port : spec.ports) {
    const size_t n_known = errors.size();
    check_port(port, kinds, mistakes);
    std::shared_ptr<Port> made = running_port(port, running);
    if (errors.size() != n_known) made = std::make_shared<PlannedPort>();
    if (made == nullptr) {
      made = make_one(port, ports_are, *env, spec.where("ports." + port.name), errors);
    }
    env->ports[port.name] = std::move(made);
  }
  check_port_users(spec, kinds, mistakes);
  add_interfaces(spec, *env, errors);
  return env;
}

}  // namespace batchplane::app
