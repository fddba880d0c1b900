// SPDX-License-Identifier: BSD-3-Clause
// load_balancer.cc - sends each flow to a backend of its service by Maglev consistent hashing.
//
// in: 1   out: by backend   drops: no_service, no_backend, too_short
// state: services and backends (editable live), packets per backend
#include <algorithm>

#include "core/module/live_table.h"
#include "core/module/register.h"
#include "modules/balance/load_balancer_book.h"
#include "modules/balance/load_balancer_flows.h"
#include "modules/balance/maglev.h"
#include "modules/common/rule_table.h"
#include "modules/common/tally.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

const DropReason kNoService{"no_service", "no service has the packet's address, protocol and port",
                            "add the service, or set other_gate for such packets"};
const DropReason kNoBackend{"no_backend", "the packet's service has no backend",
                            "add a backend, or delete the service"};

constexpr uint32_t kMaxSlots = 1'048'573;  // the greatest prime below 2^20

class LoadBalancer final : public Module {
 public:
  explicit LoadBalancer(const Args& args)
      : seed_(args.u64("flow_seed")),
        other_gate_(args.integer("other_gate")),
        n_slots_(slots_of(args)),
        book_(n_slots_),
        counters_(std::make_unique<Tally[]>(kBackendNumbers)),
        live_(std::make_unique<LoadBalancerTable>(), std::make_unique<LoadBalancerTable>(),
              args.env().quiescence) {
    book_.load(args.list("services"), args.where(), kMaxRuleGates);
    publish();
  }

  uint32_t link(uint32_t connected) override {
    const auto other = static_cast<uint32_t>(std::max<int64_t>(other_gate_, 0));
    return n_gates_ = std::max({connected, book_.highest_gate() + 1, other + 1});
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    const LoadBalancerTable& table = live_.read();
    const uint16_t* slots[exec::kMaxBatchPkts];
    find_slots(table, seed_, batch, slots);
    deal(table, slots, ctx, batch);
  }

  Value command(const std::string& verb, const Value& args) override {
    Dict answer;
    if (verb == "list") return list(args);
    if (verb == "add") {
      answer = book_.add_backend(args, n_gates_).as_dict();
    } else if (verb == "delete") {
      answer = book_.delete_backend(args).as_dict();
    } else if (verb == "add_service") {
      book_.add_service(args, n_gates_);
    } else if (verb == "delete_service") {
      book_.delete_service(args);
    } else {
      return Module::command(verb, args);
    }
    publish();
    answer.emplace("services", static_cast<int64_t>(book_.services().size()));
    return answer;
  }

  [[nodiscard]] Value show() const override {
    Dict pkts;
    for (const Service& service : book_.services()) {
      Dict of_service;
      for (const Backend& backend : service.backends) {
        of_service.emplace(backend.name, pkts_of(backend));
      }
      pkts.emplace(service.name, std::move(of_service));
    }
    return Dict{{"services", static_cast<int64_t>(book_.services().size())},
                {"backends", book_.n_backends()},
                {"table_slots", n_slots_},
                {"table_bytes", static_cast<int64_t>(live_.current().size_bytes())},
                {"pkts", std::move(pkts)}};
  }

  [[nodiscard]] Dict saved_params() const override { return {{"services", book_.list()}}; }

  // Backends keep their numbers from `old`, so its counters go on undisturbed until adopt() takes
  // them over.
  void inherit(Module& old) override {
    auto& other = static_cast<LoadBalancer&>(old);
    book_.renumber_as(other.book_);
    for (const uint16_t number : book_.take_fresh_numbers()) other.counters_[number].set(0);
    publish();
  }
  void adopt(Module& old) noexcept override {
    counters_.swap(static_cast<LoadBalancer&>(old).counters_);
  }

 private:
  static uint32_t slots_of(const Args& args) {
    const uint32_t n_slots = args.u32("table_slots");
    if (is_prime(n_slots)) return n_slots;
    uint32_t next = n_slots;
    while (!is_prime(next)) ++next;
    throw ConfigError(std::to_string(n_slots) + " is no prime", args.where() + ".table_slots",
                      "the next one is " + std::to_string(next));
  }

  void deal(const LoadBalancerTable& table, const uint16_t* const* slots, Context& ctx,
            Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    const BackendAction* const actions = table.actions();
    Tally* const counters = counters_.get();
    uint16_t numbers[exec::kMaxBatchPkts];
    uint32_t min_number = ~0U;
    for (uint32_t i = 0; i < n; ++i) {
      const uint16_t number = *slots[i];
      numbers[i] = number;
      min_number = std::min<uint32_t>(min_number, number);
      ctx.gates[i] = actions[number].gate;
      counters[number].add(1);
    }
    if (table.has_macs()) {
      for (uint32_t i = 0; i < n; ++i) {
        const BackendAction& action = actions[numbers[i]];
        if (!action.has_mac) continue;
        header_in<net::Ethernet>(*batch[i], 0).dst = action.mac;
      }
    }
    if (table.has_tunnels()) {
      for (uint32_t i = 0; i < n; ++i) {
        const BackendAction& action = actions[numbers[i]];
        if (action.has_tunnel) batch[i]->meta().tunnel_id = action.tunnel_id;
      }
    }
    if (min_number < kFirstBackend) [[unlikely]]
      settle(ctx, batch, numbers);
  }

  void settle(Context& ctx, Batch& batch, const uint16_t* numbers) const noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      if (numbers[i] == kForTooShort) {
        ctx.drop(batch, i, reason::kTooShort);
      } else if (numbers[i] == kForNoBackend) {
        ctx.drop(batch, i, kNoBackend);
      } else if (numbers[i] == kForNoService && other_gate_ < 0) {
        ctx.drop(batch, i, kNoService);
      }
    }
  }

  // Workers count under a number only after the table with that number is swapped in.
  void publish() {
    for (const uint16_t number : book_.take_fresh_numbers()) counters_[number].set(0);
    auto next = std::make_unique<LoadBalancerTable>(book_.build());
    next->set_other_gate(static_cast<GateIndex>(std::max<int64_t>(other_gate_, 0)));
    live_.replace(std::move(next), std::make_unique<LoadBalancerTable>());
  }

  [[nodiscard]] uint64_t pkts_of(const Backend& backend) const {
    return counters_[backend.number].value();
  }

  // One row per service and per backend; only one service if `args` names it.
  [[nodiscard]] Value list(const Value& args) const {
    check_keys(args, {"service"}, "list");
    const bool is_one = args.has("service");
    const std::string only = is_one ? name_in(args, "service", "list") : "";
    List services;
    List backends;
    for (const Service& service : book_.services()) {
      if (is_one && service.name != only) continue;
      uint64_t n_pkts = 0;
      for (const Backend& backend : service.backends) {
        n_pkts += pkts_of(backend);
        Dict row = backend.value().as_dict();
        row["service"] = service.name;
        row["share"] = static_cast<double>(backend.n_slots) / n_slots_;
        row["pkts"] = pkts_of(backend);
        backends.emplace_back(std::move(row));
      }
      Dict row = service.value().as_dict();
      row["backends"] = static_cast<int64_t>(service.backends.size());
      row["pkts"] = n_pkts;
      services.emplace_back(std::move(row));
    }
    return Dict{{"services", std::move(services)}, {"backends", std::move(backends)}};
  }

  const uint64_t seed_;
  const int64_t other_gate_;
  const uint32_t n_slots_;
  LoadBalancerBook book_;
  std::unique_ptr<Tally[]> counters_;  // by backend number
  LiveTable<LoadBalancerTable> live_;
  uint32_t n_gates_ = 1;  // number of linked gates; the limit for live backends
};

const Register<LoadBalancer> kLoadBalancer{{
    .kind = "load_balancer",
    .state = StateOf::kSharded,
    .help =
        "Sends each flow to one of its service's backends; few flows move when backends change.",
    .params = {{.name = "services",
                .type = ParamType::kList,
                .default_value = List{},
                .help =
                    "[{name, address, proto: tcp|udp|any, port (0 = any), backends: [{name, gate, "
                    "weight: 1..1000, mac, tunnel_id}]}]; at most 1024 with 4096 backends in all"},
               {.name = "table_slots",
                .type = ParamType::kInt,
                .default_value = 65537,
                .help = "of each service, a prime; shares are even within about backends / slots",
                .min = 3,
                .max = kMaxSlots},
               {.name = "flow_seed",
                .type = ParamType::kInt,
                .default_value = 1,
                .help = "of the hash that gives a flow its slot; same seed, same backends",
                .min = 0},
               {.name = "other_gate",
                .type = ParamType::kInt,
                .default_value = -1,
                .help = "gate of packets of no service; -1 drops them",
                .min = -1,
                .max = kMaxRuleGates - 1}},
    .drops = {&kNoService, &kNoBackend, &reason::kTooShort},
    .notes =
        "A flow is IP addresses, protocol and ports; all fragments of a packet hash without "
        "ports, and those behind the first belong to services of any port alone. A service of "
        "the packet's port goes before one of any port, and that before one of any protocol. "
        "A backend's mac becomes the destination (direct server return), its tunnel_id the "
        "packet's. Live commands: add {service, name, gate, weight, mac, tunnel_id} (changes a "
        "backend that is there) and delete {service, name} answer with the share of flows that "
        "moved and the least that any method must move; add_service, delete_service {name}, "
        "list.",
}};

}  // namespace
}  // namespace batchplane
