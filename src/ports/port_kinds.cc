// SPDX-License-Identifier: BSD-3-Clause
// port_kinds.cc - the list of port kinds, and checked construction from it.
#include "ports/port_kinds.h"

#include <algorithm>

namespace batchplane {
namespace {

std::vector<PortKindInfo> collect() {
  std::vector<PortKindInfo> all = {ports::ring_port_kind(), ports::null_port_kind(),
                                   ports::pcap_port_kind(), ports::af_packet_port_kind()};
  for (PortKindInfo& info : ports::dpdk_port_kinds()) all.push_back(std::move(info));
  std::ranges::sort(all, {}, &PortKindInfo::kind);
  return all;
}

ConfigError unknown_kind(const std::string& kind, const std::string& where) {
  std::vector<std::string> known;
  std::string all;
  for (const PortKindInfo& info : port_kinds()) {
    known.push_back(info.kind);
    all += (all.empty() ? "" : ", ") + info.kind;
  }
  const std::string near = nearest_word(kind, known);
  return ConfigError("unknown kind '" + kind + "' of port", where,
                     near.empty() ? "choose one of " + all : "did you mean '" + near + "'?");
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

std::vector<ConfigError> check_port_params(const std::string& kind, const Dict& params,
                                           const std::string& where) {
  std::vector<ConfigError> errors;
  const PortKindInfo* info = find_port_kind(kind);
  if (info == nullptr) {
    errors.push_back(unknown_kind(kind, where));
  } else {
    const Args args(info->params, params, where, errors);
  }
  return errors;
}

std::shared_ptr<Port> make_port(const std::string& kind, const Dict& params,
                                const std::string& name, Environment& env,
                                const std::string& where) {
  const std::string here = where.empty() ? "ports." + name : where;
  const PortKindInfo* info = find_port_kind(kind);
  if (info == nullptr) throw unknown_kind(kind, here);
  std::vector<ConfigError> errors;
  Args args(info->params, params, here, errors);
  if (!errors.empty()) throw errors.front();
  args.set_env(&env);
  args.set_name(name);
  return info->make(args);
}

}  // namespace batchplane
