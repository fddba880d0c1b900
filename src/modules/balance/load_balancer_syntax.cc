// SPDX-License-Identifier: BSD-3-Clause
// load_balancer_syntax.cc - parses and prints services and backends in the user's form.
#include <arpa/inet.h>

#include <algorithm>

#include "base/error.h"
#include "base/nearest_word.h"
#include "core/module/args.h"
#include "modules/balance/load_balancer_book.h"
#include "modules/common/rule_table.h"

namespace batchplane {
namespace {

constexpr int64_t kMaxWeight = 1000;
constexpr int64_t kMaxTunnelId = 0xffff'ffff;
constexpr size_t kMaxNameBytes = 63;

int64_t int_in(const Value& value, const std::string& key, int64_t least, int64_t most,
               const std::string& where) {
  const Value& found = value[key];
  const std::string range =
      "a number from " + std::to_string(least) + " to " + std::to_string(most);
  if (!found.is_int()) throw ConfigError("expected " + key, where + "." + key, "give " + range);
  if (found.as_int() < least || found.as_int() > most) {
    throw ConfigError(std::to_string(found.as_int()) + " is out of range", where + "." + key,
                      "use " + range);
  }
  return found.as_int();
}

int64_t int_or(const Value& value, const std::string& key, int64_t otherwise, int64_t least,
               int64_t most, const std::string& where) {
  return value.has(key) ? int_in(value, key, least, most, where) : otherwise;
}

void parse_address(const Value& value, const std::string& where, Service& service) {
  const std::string text = value.is_string() ? value.as_string() : "";
  if (inet_pton(AF_INET, text.c_str(), service.address.data()) != 1) {
    service.is_ipv6 = inet_pton(AF_INET6, text.c_str(), service.address.data()) == 1;
    if (!service.is_ipv6) {
      throw ConfigError("expected the service's own address", where + ".address",
                        "such as 192.0.2.10 or 2001:db8::10");
    }
  }
  if (std::ranges::all_of(service.address, [](uint8_t byte) { return byte == 0; })) {
    throw ConfigError("no packet goes to the address " + text, where + ".address",
                      "give the address that clients send to");
  }
}

uint8_t proto_of(const Value& value, const std::string& where) {
  const std::string text = value.is_null() ? "any" : value.is_string() ? value.as_string() : "";
  if (text == "any") return 0;
  if (text == "tcp") return net::kProtoTcp;
  if (text == "udp") return net::kProtoUdp;
  throw ConfigError("unknown protocol", where + ".proto", "use tcp, udp or any");
}

const char* proto_text(uint8_t proto) {
  if (proto == 0) return "any";
  return proto == net::kProtoTcp ? "tcp" : "udp";
}

const std::vector<std::string> kBackendKeys = {"name", "weight", "gate", "mac", "tunnel_id"};
const std::vector<std::string> kServiceKeys = {"name", "address", "proto", "port", "backends"};

}  // namespace

void check_keys(const Value& value, const std::vector<std::string>& allowed,
                const std::string& where) {
  std::string names;
  for (const std::string& key : allowed) names += (names.empty() ? "" : ", ") + key;
  if (!value.is_dict()) throw ConfigError("expected {" + names + "}", where, "give a dict");
  for (const auto& [key, item] : value.as_dict()) {
    if (std::ranges::find(allowed, key) != allowed.end()) continue;
    const std::string near = nearest_word(key, allowed);
    throw ConfigError("unknown key '" + key + "'", where,
                      near.empty() ? "known are " + names : "did you mean '" + near + "'?");
  }
}

const std::string& name_in(const Value& args, const std::string& key, const std::string& where) {
  const Value& name = args[key];
  if (!name.is_string() || name.as_string().empty() || name.as_string().size() > kMaxNameBytes) {
    throw ConfigError("expected a name of 1 to " + std::to_string(kMaxNameBytes) + " bytes",
                      where + "." + key, "the command list shows the names that there are");
  }
  return name.as_string();
}

Backend parse_backend(const Value& value, const std::string& where, uint32_t n_gates) {
  check_keys(value, kBackendKeys, where);
  Backend backend;
  backend.name = name_in(value, "name", where);
  backend.weight = static_cast<uint32_t>(int_or(value, "weight", 1, 1, kMaxWeight, where));
  backend.action.gate =
      static_cast<exec::GateIndex>(int_in(value, "gate", 0, int64_t{n_gates} - 1, where));
  if (value.has("mac")) {
    const Value& mac = value["mac"];
    const auto parsed = mac.is_string() ? net::parse_mac(mac.as_string()) : std::nullopt;
    if (!parsed) {
      throw ConfigError("expected a MAC address", where + ".mac", "such as 02:00:00:00:00:01");
    }
    backend.action.mac = *parsed;
    backend.action.has_mac = true;
  }
  backend.action.has_tunnel = value.has("tunnel_id");
  backend.action.tunnel_id =
      static_cast<uint32_t>(int_or(value, "tunnel_id", 0, 0, kMaxTunnelId, where));
  return backend;
}

Service parse_service(const Value& value, const std::string& where, uint32_t n_gates) {
  check_keys(value, kServiceKeys, where);
  Service service;
  service.name = name_in(value, "name", where);
  parse_address(value["address"], where, service);
  service.proto = proto_of(value["proto"], where);
  service.port = static_cast<uint16_t>(int_or(value, "port", 0, 0, 0xffff, where));
  if (service.proto == 0 && service.port != 0) {
    throw ConfigError("a port of any protocol", where + ".proto",
                      "say tcp or udp, or leave out port");
  }
  if (!value.has("backends")) return service;
  if (!value["backends"].is_list()) {
    throw ConfigError("expected a list of backends", where + ".backends",
                      "such as [{name: a, gate: 0}]");
  }
  for (const Value& item : value["backends"].as_list()) {
    const std::string at = where + ".backends[" + std::to_string(service.backends.size()) + "]";
    Backend backend = parse_backend(item, at, n_gates);
    if (std::ranges::find(service.backends, backend.name, &Backend::name) !=
        service.backends.end()) {
      throw ConfigError("another backend is called '" + backend.name + "'", at,
                        "a name stands for one backend of its service");
    }
    service.backends.push_back(std::move(backend));
  }
  return service;
}

Value Backend::value() const {
  Dict dict{{"name", name}, {"weight", weight}, {"gate", uint32_t{action.gate}}};
  if (action.has_mac) dict["mac"] = net::format_mac(action.mac);
  if (action.has_tunnel) dict["tunnel_id"] = action.tunnel_id;
  return dict;
}

std::string Service::address_text() const {
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(is_ipv6 ? AF_INET6 : AF_INET, address.data(), text, sizeof text);
}

Value Service::value() const {
  List list;
  for (const Backend& backend : backends) list.push_back(backend.value());
  return Dict{{"name", name},
              {"address", address_text()},
              {"proto", proto_text(proto)},
              {"port", uint32_t{port}},
              {"backends", std::move(list)}};
}

}  // namespace batchplane
