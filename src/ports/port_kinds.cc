// SPDX-License-Identifier: BSD-3-Clause
// port_kinds.cc - the list of port kinds, and checked construction from it.
#include "ports/port_kinds.h"

#include <algorithm>

#include "spec/check.h"

namespace batchplane {
namespace {

std::vector<PortKindInfo> collect() {
  std::vector<PortKindInfo> all = {ports::ring_port_kind(), ports::null_port_kind(),
                                   ports::pcap_port_kind(), ports::af_packet_port_kind()};
  for (PortKindInfo& info : ports::dpdk_port_kinds()) all.push_back(std::move(info));
  std::ranges::sort(all, {}, &PortKindInfo::kind);
  return all;
}

}  // namespace

const std::vector<PortKindInfo>& port_kinds() {
  static const std::vector<PortKindInfo> kKinds = collect();
  return kKinds;
}

const PortKindInfo* find_port_kind(const std::string& kind) {
  const auto it = std::ranges::find(port_kinds(), kind, &PortKindInfo::kind);
  return it == port_kinds().end() ? nullptr : &*it;
}

std::map<std::string, PortKindFacts> port_kind_facts() {
  std::map<std::string, PortKindFacts> facts;
  for (const PortKindInfo& info : port_kinds()) {
    facts[info.kind] = {info.params, info.takes_generators};
  }
  return facts;
}

std::shared_ptr<Port> make_port(const PortSpec& port, Environment& env, const std::string& where) {
  std::vector<ConfigError> errors;
  const SourceMap no_places;
  Mistakes mistakes{errors, no_places};
  check_port(port, {.ports = port_kind_facts()}, mistakes);
  if (!errors.empty()) throw errors.front();
  const PortKindInfo* info = find_port_kind(port.kind);
  Args args(info->params, port.params, where.empty() ? "ports." + port.name : where);
  args.set_env(&env);
  args.set_name(port.name);
  std::shared_ptr<Port> made = info->make(args);
  made->set_memory(info->is_memory);
  return made;
}

}  // namespace batchplane
