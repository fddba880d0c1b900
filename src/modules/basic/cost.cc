// SPDX-License-Identifier: BSD-3-Clause
// cost.cc - takes a chosen time per batch and per packet, in place of modules that are not written
// yet.
//
// in: 1   out: 1   drops: none   state: the two costs, editable live
// The only module that may read the clock on the data path: spending time is its job.
#include <atomic>

#include "base/clock.h"
#include "base/cost_spin.h"
#include "core/module/register.h"
#include "modules/basic/cost_times.h"

namespace batchplane {
namespace {

constexpr double kMaxBatchNs = 1e9;
constexpr double kMaxPktNs = 1e8;

class Cost final : public Module {
 public:
  explicit Cost(const Args& args)
      : cost_per_batch_ns_(args.number("cost_per_batch_ns") +
                           ns_of(args.number("cost_per_batch_cycles"))),
        cost_per_pkt_ns_(args.number("cost_per_pkt_ns") +
                         ns_of(args.number("cost_per_pkt_cycles"))) {}

  void process(Context& /*ctx*/, Batch& batch) noexcept {
    const CostTimes times{cost_per_batch_ns_.load(std::memory_order_relaxed),
                          cost_per_pkt_ns_.load(std::memory_order_relaxed)};
    const double busy_ns = times.busy_ns(batch.size_pkts);
    if (busy_ns > 0) spin_.spin(busy_ns);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb != "set") return Module::command(verb, args);
    if (!args.is_dict()) {
      throw ConfigError("expected {cost_per_batch_ns, cost_per_pkt_ns}", "set", "give one or both");
    }
    double per_batch_ns = cost_per_batch_ns_.load();
    double per_pkt_ns = cost_per_pkt_ns_.load();
    for (const auto& [key, value] : args.as_dict()) {
      const bool is_batch = key == "cost_per_batch_ns";
      if (!is_batch && key != "cost_per_pkt_ns") {
        throw ConfigError("unknown key '" + key + "'", "set",
                          "give cost_per_batch_ns, cost_per_pkt_ns");
      }
      const double most = is_batch ? kMaxBatchNs : kMaxPktNs;
      if (!value.is_number() || !(value.as_double() >= 0) || !(value.as_double() <= most)) {
        throw ConfigError("expected a time in ns", "set." + key,
                          is_batch ? "0 to 1e9" : "0 to 1e8");
      }
      (is_batch ? per_batch_ns : per_pkt_ns) = value.as_double();
    }
    cost_per_batch_ns_.store(per_batch_ns);
    cost_per_pkt_ns_.store(per_pkt_ns);
    return show();
  }

  [[nodiscard]] Value show() const override {
    return Dict{{"cost_per_batch_ns", cost_per_batch_ns_.load()},
                {"cost_per_pkt_ns", cost_per_pkt_ns_.load()}};
  }

  // In ns only: costs given in cycles are included.
  [[nodiscard]] Dict saved_params() const override {
    return {{"cost_per_batch_ns", cost_per_batch_ns_.load()},
            {"cost_per_pkt_ns", cost_per_pkt_ns_.load()},
            {"cost_per_batch_cycles", 0.0},
            {"cost_per_pkt_cycles", 0.0}};
  }

 private:
  static double ns_of(double cycles) { return cycles / TscClock::instance().cycles_per_ns(); }

  const CostSpin& spin_ = CostSpin::instance();
  std::atomic<double> cost_per_batch_ns_;
  std::atomic<double> cost_per_pkt_ns_;
};

const Register<Cost> kCost{{
    .kind = "cost",
    .state = StateOf::kNone,
    .help = "Keeps the core busy for cost_per_batch + cost_per_pkt x packets.",
    .params = {{.name = "cost_per_batch_ns",
                .type = ParamType::kFloat,
                .unit = "ns",
                .default_value = 0.0,
                .help = "time per batch",
                .min = 0,
                .max = kMaxBatchNs},
               {.name = "cost_per_pkt_ns",
                .type = ParamType::kFloat,
                .unit = "ns",
                .default_value = 0.0,
                .help = "time per packet",
                .min = 0,
                .max = kMaxPktNs},
               {.name = "cost_per_batch_cycles",
                .type = ParamType::kFloat,
                .unit = "cycles",
                .default_value = 0.0,
                .help = "time per batch in cycles of the time-stamp counter, added",
                .min = 0,
                .max = 4e9},
               {.name = "cost_per_pkt_cycles",
                .type = ParamType::kFloat,
                .unit = "cycles",
                .default_value = 0.0,
                .help = "time per packet in cycles of the time-stamp counter, added",
                .min = 0,
                .max = 4e8}},
    .notes =
        "Calibrated when first used; times below about 10 ns cannot be kept. Live command: set "
        "{cost_per_batch_ns, cost_per_pkt_ns}.",
    .is_passive = true,
}};

}  // namespace
}  // namespace batchplane
