// SPDX-License-Identifier: BSD-3-Clause
// kind.h - what others must know of a kind of module, and all the kinds of this program.
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

// What packets leave behind in a module, and so what several workers that share its work must heed.
enum class StateOf : uint8_t {
  kNone,      // nothing but counts: each worker may have a module of its own
  kShared,    // tables that any number of workers read; the control side edits them
  kSharded,   // of flows or hosts: each worker may have a part, when all of a flow comes to one
  kOneOwner,  // an end of a port, one rate for all, a file: one worker alone
};

// Where an input's packets come from.
enum class Feed : uint8_t { kNone, kPort, kQueue, kItself };

// Modules that name the same table have it together; the largest declaration counts.
struct TableMemory {
  std::string table;
  uint64_t bytes = 0;
};

// A file or device, and the kind, without parameters, that takes a module's place where nothing may
// be opened.
struct Opens {
  std::string what;
  std::string stand_in;
};

struct ModuleInfo {
  std::string kind;
  std::optional<StateOf> state = std::nullopt;  // every kind says which
  std::string help = "";                        // one sentence
  std::vector<ParamSpec> params = {};
  std::vector<std::string> gate_names = {};  // gates with a meaning; else they are numbers
  uint32_t first_named_gate = 0;             // number of gate_names[0]; the others follow it
  std::vector<const DropReason*> drops = {};
  bool is_egress = false;  // terminal where flows end and delays are taken
  std::string notes = "";  // what else a user should know (formats, live commands)
  // Packets leave as they came: whoever only asks where they go may leave the module out.
  bool is_passive = false;
  // Its function may run on a device (src/offload): it keeps no packet and emits none.
  bool can_offload = false;
  // Made of another kind; nobody writes it in a pipeline.
  bool is_derived = false;

  // What others must know of a kind, for whom it is one of many.
  Feed feed = Feed::kNone;   // inputs only
  bool is_for_ipv6 = false;  // such packets are what it is measured with
  // The longest frame that it brings or puts together, in bytes.
  std::function<uint64_t(const Dict& params)> frame_bytes = nullptr;
  // The tables that a module called `name` would fill.
  std::function<std::vector<TableMemory>(const std::string& name, const Dict& params)> tables =
      nullptr;
  // What of the machine it would open, where that is more than memory.
  std::function<std::optional<Opens>(const Dict& params)> opens = nullptr;
  bool makes_interfaces = false;  // of the kernel: that takes CAP_NET_ADMIN

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
// What the rules of pipelines ask of them; of ports they know nothing.
Kinds module_kind_facts();
void register_module_kind(ModuleInfo info);
// `derive` makes further kinds of each kind, whether it is registered already or later. Once.
void derive_module_kinds(std::function<std::vector<ModuleInfo>(const ModuleInfo&)> derive);

}  // namespace batchplane
