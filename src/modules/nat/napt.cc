// SPDX-License-Identifier: BSD-3-Clause
// napt.cc - network address and port translation (NAPT): many inside hosts share a few external
// addresses.
//
// in: 1 (both directions)   out: outside, inside, local   drops: napt_reasons.h, nat_reasons.h
// state: connections; owner: the worker
#include <algorithm>
#include <random>

#include "core/module/register.h"
#include "modules/nat/napt_commands.h"
#include "modules/nat/napt_reasons.h"

namespace batchplane {
namespace {

using nat::External;
using nat::ExternalPool;
using nat::NaptConfig;
using nat::NaptFragments;
using nat::NaptOrders;
using nat::NaptTable;
using nat::NaptTranslator;

constexpr uint64_t kTickNs = 10'000'000;

class Napt final : public Module {
 public:
  explicit Napt(const Args& args)
      : declared_(nat::parse_externals(args.list("external"), args.where() + ".external")),
        addresses_(declared_),
        first_port_(args.u32("port_min")),
        last_port_(args.u32("port_max")),
        translator_(make_translator(args, declared_)) {}

  void classify(Context& ctx, Batch& batch) noexcept { translator_.classify(ctx, batch); }

  void housekeep(Context& ctx, uint64_t budget_ns) noexcept override {
    now_ticks_.set(nat::tick_of(ctx.now_ns));
    orders_.drain([&](NaptOrders::Order& order) { obey(order); });
    if (is_flushing_) {
      constexpr uint64_t kStepNs = 250;
      const auto n = static_cast<uint32_t>(std::min<uint64_t>(budget_ns / kStepNs + 1, 1U << 20));
      is_flushing_ = !translator_.table().flush(flush_place_, n);
    }
    translator_.expire(ctx.now_ns, budget_ns);
  }
  [[nodiscard]] uint64_t housekeep_interval_ns() const override { return kTickNs; }

  uint32_t link(uint32_t connected) override {
    const uint32_t least = translator_.config().is_unmapped_local ? 3 : 2;
    return std::max(connected, least);
  }

  void inherit(Module& old_module) override {
    const auto& old = static_cast<Napt&>(old_module);
    if (declared_ != old.declared_) return;
    // The pipeline's declaration is unchanged, so live edits are kept.
    ExternalPool& pool = translator_.table().pool();
    for (const uint32_t address : addresses_) pool.withdraw(net::be32(address));
    addresses_ = old.addresses_;
    for (const uint32_t address : addresses_) {
      auto external = std::make_unique<External>(net::be32(address), first_port_, last_port_);
      (void)pool.add(external);
    }
  }
  void adopt(Module& old_module) noexcept override {
    auto& old = static_cast<Napt&>(old_module);
    translator_.adopt(old.translator_);
    is_flushing_ = old.is_flushing_;
    flush_place_ = old.flush_place_;
    old.orders_.drain([&](const NaptOrders::Order& order) {
      if (order.kind == NaptOrders::Kind::kFlush) start_flush();
    });
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") {
      return nat::list_connections(translator_.table(), args,
                                   static_cast<uint32_t>(now_ticks_.value()));
    }
    if (verb == "flush") {
      check_room(1, verb);
      orders_.push({.kind = NaptOrders::Kind::kFlush, .external = nullptr});
      return Dict{{"connections", translator_.table().n_sessions()}};
    }
    if (verb == "add") return add(args);
    if (verb == "delete") return remove(args);
    throw ConfigError("a napt module has no command '" + verb + "'", "",
                      "it has list, flush, add, delete");
  }
  [[nodiscard]] Value show() const override { return nat::show_napt(translator_); }
  [[nodiscard]] Dict saved_params() const override {
    if (addresses_ == declared_) return {};
    List list;
    for (const uint32_t address : addresses_) list.emplace_back(net::format_ipv4(address));
    return {{"external", std::move(list)}};
  }

 private:
  static NaptTranslator make_translator(const Args& args,
                                        const ExternalPool::Addresses& externals) {
    NaptConfig config = nat::parse_config(args);
    // A pipeline that is only checked gets no traffic and needs no full-size table.
    if (args.env().is_check) config.limits.max_connections = 16;
    std::random_device entropy;
    const uint64_t seed = uint64_t{entropy()} << 32 | entropy();
    auto pool =
        std::make_unique<ExternalPool>(externals, args.u32("port_min"), args.u32("port_max"));
    return {config, std::make_unique<NaptTable>(config.limits, config.rules, std::move(pool), seed),
            std::make_unique<NaptFragments>(args.u32("max_fragments"), seed)};
  }

  void obey(NaptOrders::Order& order) noexcept {
    ExternalPool& pool = translator_.table().pool();
    if (order.kind == NaptOrders::Kind::kFlush) start_flush();
    if (order.kind == NaptOrders::Kind::kAdd) (void)pool.add(order.external);
    if (order.kind == NaptOrders::Kind::kWithdraw) pool.withdraw(order.address_raw);
  }
  void start_flush() noexcept {
    is_flushing_ = true;
    flush_place_ = 0;
  }
  void check_room(size_t n, const std::string& verb) const {
    if (orders_.has_room(static_cast<uint32_t>(n))) return;
    throw ConfigError("too many edits wait for the worker", verb, "try again in a moment");
  }
  static std::vector<uint32_t> addresses_of(const Value& args, const std::string& verb) {
    const Value& given = args.is_dict() ? args["external"] : args;
    if (given.is_list()) return nat::parse_externals(given.as_list(), verb);
    return nat::parse_externals({given}, verb);
  }

  Value add(const Value& args) {
    const std::vector<uint32_t> given = addresses_of(args, "add");
    std::vector<uint32_t> next = addresses_;
    for (const uint32_t address : given) {
      if (std::ranges::find(next, address) != next.end())
        throw ConfigError(net::format_ipv4(address) + " is there already", "add");
      next.push_back(address);
    }
    if (next.size() > nat::kMaxExternal / 2) {
      throw ConfigError("too many external addresses", "add",
                        "at most " + std::to_string(nat::kMaxExternal / 2) + " with live edits");
    }
    check_room(given.size(), "add");
    for (const uint32_t address : given) {
      orders_.push(
          {.kind = NaptOrders::Kind::kAdd,
           .external = std::make_unique<External>(net::be32(address), first_port_, last_port_)});
    }
    addresses_ = std::move(next);
    return Dict{{"external", static_cast<uint64_t>(addresses_.size())}};
  }

  Value remove(const Value& args) {
    const std::vector<uint32_t> given = addresses_of(args, "delete");
    std::vector<uint32_t> next = addresses_;
    for (const uint32_t address : given) {
      const auto at = std::ranges::find(next, address);
      if (at == next.end()) {
        throw ConfigError(net::format_ipv4(address) + " is no external address", "delete",
                          "show has the list");
      }
      next.erase(at);
    }
    if (next.empty()) throw ConfigError("no external address would be left", "delete", "add first");
    check_room(given.size(), "delete");
    for (const uint32_t address : given) {
      orders_.push({.kind = NaptOrders::Kind::kWithdraw,
                    .address_raw = net::be32(address),
                    .external = nullptr});
    }
    addresses_ = std::move(next);
    return Dict{{"external", static_cast<uint64_t>(addresses_.size())}};
  }

  const ExternalPool::Addresses declared_;
  ExternalPool::Addresses addresses_;  // including live edits
  const uint32_t first_port_;
  const uint32_t last_port_;
  NaptTranslator translator_;
  NaptOrders orders_;
  Tally now_ticks_;
  bool is_flushing_ = false;
  uint32_t flush_place_ = 0;
};

const Register<Napt> kNapt{{
    .kind = "napt",
    .state = StateOf::kSharded,
    .help = "Translates addresses and ports of many inside hosts to a few external addresses.",
    .params = nat::napt_params(),
    .gate_names = {"outside", "inside", "local"},
    .drops = {&nat::kNoMapping, &nat::kFiltered, &nat::kTableFull, &nat::kPortsExhausted,
              &nat::kHostLimit, &nat::kFragmentUnknown, &nat::kFragmentOverlap,
              &nat::kUnsupportedProtocol, &nat::kIcmpUnsupported, &nat::kOwnSource,
              &reason::kTooShort, &reason::kBadVersion, &reason::kBadHeaderLength,
              &reason::kBadTotalLength},
    .notes =
        "RFC 4787, 5382, 5508: mappings do not depend on the remote end, an inside host keeps one "
        "external address, its ports where they are free. Packets for an external address go to "
        "gate inside (those of inside hosts as well, hairpinned), or to gate local when no mapping "
        "is there and unmapped is local; all others to gate outside. Later fragments follow the "
        "first one of their packet; those that come before it are dropped. Live commands: list "
        "{protocol, state, inside, outside, remote, limit}, flush, add and delete {external: "
        "address, prefix or list}. A deleted address keeps its connections until they end. At an "
        "apply connections stay, with the table's size and port range; all else is as the new file "
        "says.",
}};

}  // namespace
}  // namespace batchplane
