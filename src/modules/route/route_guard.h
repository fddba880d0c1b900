// SPDX-License-Identifier: BSD-3-Clause
// route_guard.h - restricts the sources and outputs of a lookup: the reverse-path check, and closed
// interfaces.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/module/args.h"
#include "modules/route/route_lookup.h"

namespace batchplane {

inline const DropReason kReversePath{
    "reverse_path", "the way back to the packet's source is not the one that it came by",
    "its source is forged; else add a route to it, or set reverse_path: loose or off"};
inline const DropReason kClosedInterface{
    "closed_interface", "the packet leads to an interface that is closed to where it comes from",
    "nothing to mend: that network is not to be reached from there (see closed_interfaces)"};

// Parameters that read a table without being part of it.
inline void add_guard_params(std::vector<ParamSpec>& specs) {
  specs.push_back({.name = "reverse_path",
                   .type = ParamType::kString,
                   .default_value = "off",
                   .help =
                       "what a packet's source must be: reachable by the interface that it came "
                       "in on (strict), reachable at all (loose), or anything (off)",
                   .choices = {"off", "loose", "strict"}});
  specs.push_back({.name = "closed_interfaces",
                   .type = ParamType::kList,
                   .default_value = List{},
                   .help = "interfaces that packets from here must neither leave by nor address"});
}

// Constructed by the control thread. Workers: apply().
template <class Family>
class RouteGuardOf {
 public:
  explicit RouteGuardOf(const Args& args)
      : is_strict_(args.string("reverse_path") == "strict"),
        checks_source_(args.string("reverse_path") != "off") {
    const std::vector<Interface>& interfaces = args.env().interfaces;
    if (is_strict_ && interfaces.empty()) {
      throw ConfigError("reverse_path: strict needs interfaces", args.where() + ".reverse_path",
                        "declare interfaces with addresses in the pipeline, or use loose");
    }
    for (const Value& name : args.list("closed_interfaces")) {
      if (!name.is_string()) {
        throw ConfigError("expected names of interfaces", args.where() + ".closed_interfaces",
                          "such as [lan]");
      }
      const Interface& closed = args.env().interface(name.as_string());
      is_closed_.resize(interfaces.size());
      is_closed_[closed.index] = true;
      for (const auto& own : Family::addresses(closed)) closed_addresses_.push_back(own.address);
    }
  }

  [[nodiscard]] bool is_on() const { return checks_source_ || !is_closed_.empty(); }

  // Checks n packets from `first` on, those that the lookup in `table` left in the batch with a
  // next hop in their metadata.
  [[gnu::noinline]] void apply(Context& ctx, Batch& batch, uint32_t first, uint32_t n,
                               const RouteTableOf<Family>& table) const noexcept {
    if (checks_source_) check_sources(ctx, batch, first, n, table);
    if (is_closed_.empty()) return;
    for (uint32_t i = first; i < first + n; ++i) {
      if (batch[i] != nullptr && leads_to_closed(*batch[i], table.hops())) {
        ctx.drop(batch, i, kClosedInterface);
      }
    }
  }

 private:
  using To = route_lookup::Destination<Family>;
  using Header = typename To::Header;
  using Address = typename Family::Address;

  void check_sources(Context& ctx, Batch& batch, uint32_t first, uint32_t n,
                     const RouteTableOf<Family>& table) const noexcept {
    if (n == 0) __builtin_unreachable();  // else g++ warns about uninitialised addresses
    alignas(64) typename To::Key keys[exec::kMaxBatchPkts];
    alignas(64) uint64_t ids[exec::kMaxBatchPkts];
    for (uint32_t i = 0; i < n; ++i) {
      To::clear(keys[i]);
      Packet* const pkt = batch[first + i];
      if (pkt != nullptr) To::read_source(header_in<Header>(*pkt, l3_offset_of(*pkt)), keys[i]);
    }
    table.fib().lookup(keys, ids, n);
    for (uint32_t i = 0; i < n; ++i) {
      Packet* const pkt = batch[first + i];
      if (pkt != nullptr && !is_source_good(*pkt, table.hops(), ids[i])) {
        ctx.drop(batch, first + i, kReversePath);
      }
    }
  }

  // Packets without an input interface come from this router or its host.
  bool is_source_good(Packet& pkt, const NextHops& hops, uint64_t id) const noexcept {
    const uint16_t in = pkt.meta().in_interface;
    if (in == kNoInterface) return true;
    const ForwardWord word = hops.forward(id);
    if ((word & (kForwardNoRoute | kForwardDrop)) == 0 && leads_back(word, hops, in)) return true;
    // A host without an address checks whether one is free (RFC 4862).
    const Address src = header_in<Header>(pkt, l3_offset_of(pkt)).src;
    return Family::kBits == 128 && Family::is_zero(src);
  }

  bool leads_back(ForwardWord word, const NextHops& hops, uint16_t in) const noexcept {
    const NextHop* const hop = hops.at(static_cast<uint32_t>(word >> 32));
    if (hop == nullptr) return false;
    if (hop->kind != NextHop::Kind::kGroup) return is_way_back(*hop, in);
    return std::ranges::any_of(hop->members, [&](const NextHop::Member& member) {
      const NextHop* const one = hops.at(member.id);
      return one != nullptr && is_way_back(*one, in);
    });
  }
  // A router's own address is no valid source for packets from outside.
  bool is_way_back(const NextHop& hop, uint16_t in) const noexcept {
    return hop.kind == NextHop::Kind::kForward &&
           (!is_strict_ || hop.interface == in || hop.interface == kArrivalInterface);
  }

  bool leads_to_closed(Packet& pkt, const NextHops& hops) const noexcept {
    const NextHop* const hop = hops.at(pkt.meta().next_hop);
    if (hop == nullptr) return false;
    if (hop->kind == NextHop::Kind::kLocal) {
      const Address dst = header_in<Header>(pkt, l3_offset_of(pkt)).dst;
      return std::ranges::find(closed_addresses_, dst) != closed_addresses_.end();
    }
    const uint16_t out =
        hop->interface == kArrivalInterface ? pkt.meta().in_interface : hop->interface;
    return out < is_closed_.size() && is_closed_[out];
  }

  const bool is_strict_;
  const bool checks_source_;
  std::vector<bool> is_closed_;  // by interface; empty: none is closed
  std::vector<Address> closed_addresses_;
};

}  // namespace batchplane
