// SPDX-License-Identifier: BSD-3-Clause
// kind.h - the properties of a module kind that other code needs, and the list of all kinds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/module/args.h"
#include "core/module/drop_reason.h"
#include "core/module/module.h"
#include "spec/kinds.h"

namespace batchplane {

// A module's state, which decides how several workers may share its work.
enum class StateOf : uint8_t {
  kNone,      // only counters: each worker may have a module of its own
  kShared,    // tables that any number of workers read; the control thread edits them
  kSharded,   // per flow or host: each worker may have a part if each flow stays on one worker
  kOneOwner,  // an end of a port, a rate for all packets, a file: one worker only
};

// Where an input's packets come from.
enum class Feed : uint8_t { kNone, kPort, kQueue, kItself };

// Modules that name the same table share it; the largest declaration counts.
struct TableMemory {
  std::string table;
  uint64_t bytes = 0;
};

// A file or device that the module opens, and the kind, without parameters, that replaces the module where
// nothing may be opened.
struct Opens {
  std::string what;
  std::string stand_in;
};

struct ModuleInfo {
  std::string kind;
  std::optional<StateOf> state = std::nullopt;  // every kind sets it
  std::string help = "";                        // one sentence
  std::vector<ParamSpec> params = {};
  std::vector<std::string> gate_names = {};  // names of gates with a meaning; others are numbers
  uint32_t first_named_gate = 0;             // number of gate_names[0]; the others follow it
  std::vector<const DropReason*> drops = {};
  bool is_egress = false;  // terminal where flows end and delays are measured
  std::string notes = "";  // what else a user should know (formats, live commands)
  // Packets leave unchanged: a walk that only looks for their path may skip the module.
  bool is_passive = false;
  // Its function may run on a device (src/offload): it neither keeps nor emits packets.
  bool can_offload = false;
  // Derived from another kind; not written in pipelines.
  bool is_derived = false;

  // For code that treats all kinds alike.
  Feed feed = Feed::kNone;   // inputs only
  bool is_for_ipv6 = false;  // it is measured with IPv6 packets
  // The longest frame, in bytes, that it receives or builds.
  std::function<uint64_t(const Dict& params)> frame_bytes = nullptr;
  // The tables that a module called `name` would fill.
  std::function<std::vector<TableMemory>(const std::string& name, const Dict& params)> tables =
      nullptr;
  // The file or device that it would open, if any.
  std::function<std::optional<Opens>(const Dict& params)> opens = nullptr;
  bool makes_interfaces = false;  // kernel interfaces, which needs CAP_NET_ADMIN

  // Filled by Register.
  Shape shape = Shape::kInPlace;
  std::function<std::unique_ptr<Module>(const Args&)> make = nullptr;
  void (*run)(void* module, Context&, Packet** pkts, uint32_t n_pkts) noexcept = nullptr;
  uint32_t (*poll)(Module&, Context&, Packet**, uint32_t) noexcept = nullptr;

  [[nodiscard]] uint32_t gate_number(uint32_t name_index) const {
    return first_named_gate + name_index;
  }
};

// By name; nullptr when unknown.
const ModuleInfo* find_module_kind(const std::string& kind);
// All kinds of this program that a pipeline may name.
std::vector<const ModuleInfo*> all_module_kinds();
// Facts for the rules of pipelines; without those of ports.
Kinds module_kind_facts();
void register_module_kind(ModuleInfo info);
// `derive` makes further kinds from each kind, whether registered already or later. Call once.
void derive_module_kinds(std::function<std::vector<ModuleInfo>(const ModuleInfo&)> derive);

}  // namespace batchplane
