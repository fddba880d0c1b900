// SPDX-License-Identifier: BSD-3-Clause
// memory_plan.cc - sums up pool and tables.
#include "app/plan/memory_plan.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/net_headers.h"
#include "core/engine/engine.h"
#include "core/module/kind.h"
#include "spec/params.h"
#include "spec/parts.h"
#include "traffic/flow_spec.h"

namespace batchplane::app {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;
constexpr uint64_t kBaseBytes = 96 * kMegabyte;
constexpr uint32_t kUsualDataBytes = 2048;
constexpr uint32_t kEthernetAndTags = net::kEthBytes + 2 * net::kVlanTagBytes;
// Descriptors, per-thread caches and packets held by modules, per module and port.
constexpr uint64_t kPktsPerPort = 8192;
constexpr uint64_t kPktsPerModule = 1024;
constexpr uint64_t kPktOverheadBytes = 512;  // mbuf, headroom, pool overhead
// The running table, and one that an apply fills beside it if its declaration differs.
constexpr uint64_t kTableCopies = 2;

uint64_t declared_bytes(const PipelineSpec& spec) {
  uint64_t most = kUsualDataBytes;
  for (const InterfaceSpec& interface : spec.interfaces) {
    most = std::max<uint64_t>(most, interface.mtu_bytes + kEthernetAndTags);
  }
  for (const ModuleSpec& module : spec.modules) {
    const ModuleInfo* const info = find_module_kind(module.kind);
    if (info == nullptr || !info->frame_bytes) continue;
    most = std::max(most, info->frame_bytes(module.params));
  }
  for (const GeneratorSpec& generator : spec.generators) {
    most = std::max(most, traffic::longest_frame_bytes(generator.params));
  }
  return std::min<uint64_t>(most, kMaxFrameBytes);
}

// Invalid sizes are refused when the graph is built, so they count for no memory here.
bool are_params_good(const ModuleInfo& info, const ModuleSpec& module) {
  std::vector<ConfigError> errors;
  const SourceMap no_places;
  Mistakes mistakes{errors, no_places};
  check_params(info.params, module.params, module.name, {}, mistakes);
  return errors.empty();
}

uint64_t table_bytes(const PipelineSpec& spec) {
  std::map<std::string, uint64_t> bytes_of;
  for (const ModuleSpec& module : spec.modules) {
    const ModuleInfo* const info = find_module_kind(module.kind);
    if (info == nullptr || !info->tables || !are_params_good(*info, module)) continue;
    for (const TableMemory& table : info->tables(module.name, module.params)) {
      uint64_t& bytes = bytes_of[table.table];
      bytes = std::max(bytes, table.bytes);
    }
  }
  uint64_t sum = 0;
  for (const auto& [name, bytes] : bytes_of) sum += bytes;
  return sum;
}

// A computed pool size has room for modules that a later apply adds.
uint64_t spare_pkts(uint64_t least) { return std::max<uint64_t>(least / 4, kPktsPerModule); }

// With several workers parts may move; each has a queue before it and perhaps one behind.
uint64_t moves_pkts(const PipelineSpec& spec) {
  constexpr uint64_t kQueues = 24;
  return spec.workers.size() > 1 ? kQueues * in_queue_pkts(spec) : 0;
}

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
  pkts += moves_pkts(spec);
  pkts = std::max<uint64_t>(pkts, spec.engine.pool_pkts + kPktsPerPort);
  const uint64_t bytes = kBaseBytes + pkts * (declared_bytes(spec) + kPktOverheadBytes) +
                         kTableCopies * table_bytes(spec);
  return bytes / kMegabyte + 1;
}

uint32_t pool_pkts_for(const Graph& graph) {
  const uint64_t least = Engine::min_pool_pkts(graph);
  const uint32_t asked = graph.spec.engine.pool_pkts;
  if (asked == 0)
    return static_cast<uint32_t>(
        std::min<uint64_t>(least + spare_pkts(least) + moves_pkts(graph.spec), 1U << 30));
  if (asked >= least) return asked;
  throw ConfigError("a pool of " + std::to_string(asked) +
                        " packets is too small: this pipeline can hold " + std::to_string(least),
                    graph.spec.where("engine.pool_pkts"),
                    "0 = computed, or at least " + std::to_string(least));
}

}  // namespace batchplane::app
