// SPDX-License-Identifier: BSD-3-Clause
// vrf_lookup.cc - longest-prefix match in the table of each packet's VRF.
//
// in: 1   out: by route   drops: no_route, route_drop, unknown_vrf, too_short, reverse_path,
// closed_interface
// thread-safe: table edits while workers look up
#include <algorithm>

#include "base/net.h"
#include "core/module/register.h"
#include "modules/common/item_syntax.h"
#include "modules/route/route_commands.h"
#include "modules/route/route_guard.h"
#include "modules/route/route_lookup.h"

namespace batchplane {
namespace {

const DropReason kUnknownVrf{"unknown_vrf", "the lookup has no table for the packet's VRF",
                             "declare the VRF here, or look at the module that set it"};

constexpr uint32_t kMaxVrfs = 4096;

// The keys of an entry of `vrfs`: all parameters of a single-table lookup but the seed, which the
// whole module has.
std::vector<ParamSpec> table_params() {
  std::vector<ParamSpec> specs = route_params<Ipv4Family>();
  std::erase_if(specs, [](const ParamSpec& spec) { return spec.name == "flow_seed"; });
  return specs;
}

class VrfLookup final : public Module {
 public:
  explicit VrfLookup(const Args& args) : guard_(args), flow_seed_(args.u32("flow_seed")) {
    const List& list = args.list("vrfs");
    for (size_t i = 0; i < list.size(); ++i) {
      declare(list[i], args, args.where() + ".vrfs[" + std::to_string(i) + "]");
    }
    tables_.resize(vrfs_.empty() ? 0 : vrfs_.rbegin()->first + 1);
    for (const auto& [id, vrf] : vrfs_) tables_[id] = &vrf.commands->table();
  }
  ~VrfLookup() override {
    for (const auto& [id, vrf] : vrfs_) vrf.commands->table().forget_module(this);
  }

  // Looks up runs of packets of the same VRF together: usually that is the whole batch.
  void classify(Context& ctx, Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    alignas(64) uint32_t addresses[exec::kMaxBatchPkts];
    alignas(64) uint64_t ids[exec::kMaxBatchPkts];
    const ForwardWord shortness =
        route_lookup::gather<Ipv4Family>(batch, addresses) ? 0 : kForwardSpecial;
    RouteTable* const* const tables = tables_.data();
    const uint32_t n_tables = static_cast<uint32_t>(tables_.size());
    for (uint32_t first = 0; first < n;) {
      const uint32_t vrf = batch[first]->meta().vrf;
      uint32_t end = first + 1;
      while (end < n && batch[end]->meta().vrf == vrf) ++end;
      const RouteTable* const table = vrf < n_tables ? tables[vrf] : nullptr;
      if (table == nullptr) [[unlikely]] {
        for (; first < end; ++first) ctx.drop(batch, first, kUnknownVrf);
        continue;
      }
      const ForwardWord seen =
          shortness | route_lookup::forward<Ipv4Family>(batch, ctx.gates, first, end - first,
                                                        *table, addresses, ids);
      if ((seen & kForwardSpecial) != 0) [[unlikely]] {
        route_lookup::settle_special<Ipv4Family>(ctx, batch, first, end - first, table->hops(), ids,
                                                 flow_seed_);
      }
      if (guard_.is_on()) guard_.apply(ctx, batch, first, end - first, *table);
      first = end;
    }
  }

  uint32_t link(uint32_t connected) override {
    uint32_t n = connected;
    for (const auto& [id, vrf] : vrfs_) {
      vrf.commands->finish_table();
      n = std::max(n, vrf.commands->table().hops().highest_gate() + 1);
    }
    for (const auto& [id, vrf] : vrfs_) vrf.commands->table().limit_gates(this, n);
    return n;
  }

  Value command(const std::string& verb, const Value& args) override {
    if (!args.is_dict()) throw ConfigError("expected a mapping", verb);
    if (!args.has("vrf")) throw ConfigError("vrf is missing", verb, "name the VRF by its number");
    const auto id = static_cast<uint16_t>(int_value(args["vrf"], 0, 0xffff, verb + ".vrf"));
    const auto it = vrfs_.find(id);
    if (it == vrfs_.end()) {
      throw ConfigError("there is no VRF " + std::to_string(id), verb + ".vrf",
                        "`show` lists those that there are");
    }
    Dict rest = args.as_dict();
    rest.erase("vrf");
    return it->second.commands->run(verb, rest);
  }

  [[nodiscard]] Value show() const override {
    List all;
    for (const auto& [id, vrf] : vrfs_) {
      Dict one = vrf.commands->table().show();
      one["vrf"] = id;
      all.emplace_back(std::move(one));
    }
    return Dict{{"vrfs", std::move(all)}};
  }
  [[nodiscard]] Dict saved_params() const override {
    List all;
    for (const auto& [id, vrf] : vrfs_) {
      Dict one = vrf.declared;
      for (auto& [key, value] : vrf.commands->saved_params()) one[key] = value;
      one["vrf"] = id;
      all.emplace_back(std::move(one));
    }
    return {{"vrfs", std::move(all)}};
  }
  void inherit(Module& old) override {
    const auto& other = static_cast<const VrfLookup&>(old);
    for (const auto& [id, vrf] : vrfs_) {
      const auto it = other.vrfs_.find(id);
      if (it != other.vrfs_.end()) vrf.commands->inherit(*it->second.commands);
    }
  }

 private:
  struct Vrf {
    Dict declared;
    std::unique_ptr<RouteCommands> commands;
  };

  void declare(const Value& item, const Args& args, const std::string& where) {
    if (!item.is_dict() || !item.has("vrf")) {
      throw ConfigError("vrf is missing", where, "such as {vrf: 1, routes: [..]}");
    }
    const auto id = static_cast<uint16_t>(int_value(item["vrf"], 0, 0xffff, where + ".vrf"));
    if (vrfs_.contains(id)) {
      throw ConfigError("VRF " + std::to_string(id) + " is declared twice", where, "keep one");
    }
    if (vrfs_.size() == kMaxVrfs) {
      throw ConfigError("there are too many VRFs", where,
                        "at most " + std::to_string(kMaxVrfs) + " fit");
    }
    Dict given = item.as_dict();
    given.erase("vrf");
    std::vector<ConfigError> errors;
    Args own(table_params(), given, where, errors);
    if (!errors.empty()) throw ConfigError(errors.front());
    own.set_env(&args.env());
    own.set_name(args.name() + ".vrf" + std::to_string(id));
    auto commands = std::make_unique<RouteCommands>(own);
    vrfs_.emplace(id, Vrf{std::move(given), std::move(commands)});
  }

  std::map<uint16_t, Vrf> vrfs_;
  std::vector<RouteTable*> tables_;  // by VRF; null where there is no table
  const RouteGuardOf<Ipv4Family> guard_;
  const uint32_t flow_seed_;
};

std::vector<ParamSpec> params() {
  std::vector<ParamSpec> specs = {
      {.name = "vrfs",
       .type = ParamType::kList,
       .help = "[{vrf: N, ..}], with routes, next_hops, table, file and all else that an "
               "ipv4_lookup has; the table of VRF N is called NAME.vrfN unless `table` says else"}};
  std::ranges::copy_if(route_params<Ipv4Family>(), std::back_inserter(specs),
                       [](const ParamSpec& spec) { return spec.name == "flow_seed"; });
  add_guard_params(specs);
  return specs;
}

std::vector<TableMemory> tables_of_vrfs(const std::string& name, const Dict& params) {
  std::vector<TableMemory> tables;
  const auto vrfs = params.find("vrfs");
  if (vrfs == params.end() || !vrfs->second.is_list()) return tables;
  const List& list = vrfs->second.as_list();
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_dict()) continue;
    const std::string own_name = name + ".vrfs[" + std::to_string(i) + "]";
    std::ranges::move(route_table_memory<Ipv4Family>(own_name, list[i].as_dict()),
                      std::back_inserter(tables));
  }
  return tables;
}

const Register<VrfLookup> kVrfLookup{{
    .kind = "vrf_lookup",
    .state = StateOf::kShared,
    .help = "Longest-prefix match on the IPv4 destination in the table of the packet's VRF.",
    .params = params(),
    .gate_names = {"forward", "local"},
    .drops = {&reason::kNoRoute, &reason::kRouteDrop, &kUnknownVrf, &reason::kTooShort,
              &kReversePath, &kClosedInterface},
    .notes = "All tables share the gates; next-hop ids are each table's own. Live commands name "
             "their VRF: add {vrf, prefix, gate}. " +
             route_notes<Ipv4Family>(),
    .tables = &tables_of_vrfs,
}};

}  // namespace
}  // namespace batchplane
