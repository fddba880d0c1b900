// SPDX-License-Identifier: BSD-3-Clause
// port_kinds.h - the kinds of ports with their parameters, and a function to make one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/module/args.h"
#include "core/module/environment.h"
#include "core/packet/port.h"
#include "spec/kinds.h"
#include "spec/pipeline_spec.h"

namespace batchplane {

struct PortKindInfo {
  std::string kind;
  std::string help;  // one sentence
  std::vector<ParamSpec> params = {};
  std::string notes = "";
  bool is_memory = false;         // it opens nothing outside this process
  bool takes_generators = false;  // generators can fill it
  bool makes_interfaces = false;  // may create kernel interfaces, which needs CAP_NET_ADMIN
  std::function<std::shared_ptr<Port>(const Args&)> make = nullptr;
};

// nullptr when unknown.
const PortKindInfo* find_port_kind(const std::string& kind);
// Sorted by name. Kinds that this build lacks (DPDK ports without DPDK) are left out.
const std::vector<PortKindInfo>& port_kinds();

// Facts for the rules of pipelines, by kind.
std::map<std::string, PortKindFacts> port_kind_facts();

// Makes a port from its specification, not started yet. `where`: the place for messages. Throws ConfigError.
std::shared_ptr<Port> make_port(const PortSpec& port, Environment& env,
                                const std::string& where = "");

namespace ports {
PortKindInfo ring_port_kind();
PortKindInfo null_port_kind();
PortKindInfo pcap_port_kind();
PortKindInfo af_packet_port_kind();
// Kinds `dpdk` and `tap`; empty in a build without DPDK.
std::vector<PortKindInfo> dpdk_port_kinds();
}  // namespace ports

}  // namespace batchplane
