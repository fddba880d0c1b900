// SPDX-License-Identifier: BSD-3-Clause
// memory_plan.cc - adds up pool and tables.
#include "app/memory_plan.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/engine.h"
#include "modules/acl_book.h"
#include "modules/route_syntax.h"
#include "traffic/tunnel_frame.h"

namespace batchplane::app {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;
constexpr uint64_t kBaseBytes = 96 * kMegabyte;
constexpr uint32_t kUsualDataBytes = 2048;
constexpr uint32_t kEthernetAndTags = 14 + 8;
// Descriptors, per-thread caches and what modules hold, for each module and port.
constexpr uint64_t kPktsPerPort = 8192;
constexpr uint64_t kPktsPerModule = 1024;
constexpr uint64_t kPktOverheadBytes = 512;  // descriptor, headroom, the pool's own bookkeeping
// A table that runs, and one that an apply fills beside it when the file declares another.
constexpr uint64_t kTableCopies = 2;

// Frames are declared as size_bytes at any depth of a source's parameters.
uint64_t largest_size(const Value& value) {
  uint64_t most = 0;
  if (value.is_list()) {
    for (const Value& element : value.as_list()) most = std::max(most, largest_size(element));
  } else if (value.is_dict()) {
    for (const auto& [key, element] : value.as_dict()) {
      const bool is_size = key == "size_bytes" && element.is_int() && element.as_int() > 0;
      most =
          std::max(most, is_size ? static_cast<uint64_t>(element.as_int()) : largest_size(element));
    }
    if (value.has("tunnel")) most += traffic::kMostTunnelBytes;
  } else if (value.is_string()) {
    most = value.as_string().size() / 2;  // raw_hex: two digits a byte
  }
  return most;
}

// The first fragment's buffer takes the whole packet.
uint64_t datagram_bytes(const Dict& params) {
  constexpr uint64_t kDefaultBytes = 4096;
  const auto given = params.find("max_datagram_bytes");
  const bool is_given = given != params.end() && given->second.is_int();
  const int64_t bytes = is_given ? given->second.as_int() : kDefaultBytes;
  return static_cast<uint64_t>(std::max<int64_t>(bytes, 0)) + kEthernetAndTags;
}

uint64_t declared_bytes(const PipelineSpec& spec) {
  uint64_t most = kUsualDataBytes;
  for (const InterfaceSpec& interface : spec.interfaces) {
    most = std::max<uint64_t>(most, interface.mtu_bytes + kEthernetAndTags);
  }
  for (const ModuleSpec& module : spec.modules) {
    if (module.kind == "source") most = std::max(most, largest_size(module.params));
    if (module.kind == "reassembly") most = std::max(most, datagram_bytes(module.params));
  }
  for (const GeneratorSpec& generator : spec.generators) {
    most = std::max(most, largest_size(generator.params));
  }
  return std::min<uint64_t>(most, kMaxFrameBytes);
}

// Lookups that name one table share it; the one that declares its sizes is hardly ever the smaller.
void add_table(std::map<std::string, uint64_t>& bytes_of, const Dict& params,
               const std::string& own_name, bool is_ipv6 = false) {
  const auto given = params.find("table");
  const bool is_named =
      given != params.end() && given->second.is_string() && !given->second.as_string().empty();
  const std::string table = is_named ? given->second.as_string() : own_name;
  uint64_t& bytes = bytes_of[(is_ipv6 ? "6 " : "4 ") + table];
  bytes = std::max(bytes,
                   is_ipv6 ? route6_table_memory_bytes(params) : route_table_memory_bytes(params));
}

uint64_t table_bytes(const PipelineSpec& spec) {
  std::map<std::string, uint64_t> bytes_of;
  for (const ModuleSpec& module : spec.modules) {
    if (module.kind == "ipv4_lookup") add_table(bytes_of, module.params, module.name);
    if (module.kind == "ipv6_lookup") add_table(bytes_of, module.params, module.name, true);
    const auto vrfs = module.params.find("vrfs");
    if (module.kind != "vrf_lookup" || vrfs == module.params.end()) continue;
    if (!vrfs->second.is_list()) continue;
    const List& list = vrfs->second.as_list();
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_dict()) continue;
      add_table(bytes_of, list[i].as_dict(), module.name + ".vrfs[" + std::to_string(i) + "]");
    }
  }
  uint64_t sum = 0;
  for (const auto& [name, bytes] : bytes_of) sum += bytes;
  for (const ModuleSpec& module : spec.modules) {
    if (module.kind == "acl") sum += acl_memory_bytes(module.params);
  }
  return sum;
}

// A computed pool leaves room for modules that a later apply adds.
uint64_t spare_pkts(uint64_t least) { return std::max<uint64_t>(least / 4, kPktsPerModule); }

}  // namespace

uint32_t data_bytes_needed(const PipelineSpec& spec, const Environment& env) {
  uint64_t most = declared_bytes(spec);
  for (const auto& [name, port] : env.ports) {
    most = std::max<uint64_t>(most, port->max_frame_bytes());
  }
  return static_cast<uint32_t>((most + 63) / 64 * 64);
}

uint64_t memory_mb_estimate(const PipelineSpec& spec) {
  uint64_t pkts =
      spec.modules.size() * (spec.engine.batch_pkts + kPktsPerModule) +
      (spec.ports.size() + spec.generators.size() + spec.workers.size() + 1) * kPktsPerPort;
  for (const PortSpec& port : spec.ports) {
    for (const auto& [key, value] : port.params) {
      if (key.ends_with("_pkts") && value.is_int() && value.as_int() > 0) {
        pkts += static_cast<uint64_t>(std::min<int64_t>(value.as_int(), 1 << 22));
      }
    }
  }
  pkts = std::max<uint64_t>(pkts, spec.engine.pool_pkts + kPktsPerPort);
  const uint64_t bytes = kBaseBytes + pkts * (declared_bytes(spec) + kPktOverheadBytes) +
                         kTableCopies * table_bytes(spec);
  return bytes / kMegabyte + 1;
}

uint32_t pool_pkts_for(const Graph& graph) {
  const uint64_t least = Engine::least_pool_pkts(graph);
  const uint32_t asked = graph.spec.engine.pool_pkts;
  if (asked == 0)
    return static_cast<uint32_t>(std::min<uint64_t>(least + spare_pkts(least), 1U << 30));
  if (asked >= least) return asked;
  throw ConfigError("a pool of " + std::to_string(asked) +
                        " packets is too small: this pipeline can hold " + std::to_string(least),
                    graph.spec.where("engine.pool_pkts"),
                    "0 = computed, or at least " + std::to_string(least));
}

}  // namespace batchplane::app
