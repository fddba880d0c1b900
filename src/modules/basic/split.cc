// SPDX-License-Identifier: BSD-3-Clause
// split.cc - spreads packets over gates: round robin, at random, by weight, or by flow.
//
// in: 1   out: `gates`   drops: too_short (mode hash)   state: position, generator, weights
// (editable)
#include "base/alias_table.h"
#include "base/rng.h"
#include "core/module/live_table.h"
#include "core/module/register.h"
#include "modules/headers/flow_key.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

constexpr uint32_t kMaxSplitGates = 4096;

enum class Mode : uint8_t { kRoundRobin, kRandom, kWeighted, kHash };

Mode mode_of(const std::string& name) {
  if (name == "round_robin") return Mode::kRoundRobin;
  if (name == "random") return Mode::kRandom;
  return name == "weighted" ? Mode::kWeighted : Mode::kHash;
}

std::vector<double> weights_of(const List& list, uint32_t n_gates, const std::string& where) {
  if (list.size() != n_gates) {
    throw ConfigError("there are " + std::to_string(list.size()) + " weights for " +
                          std::to_string(n_gates) + " gates",
                      where, "give one weight per gate");
  }
  std::vector<double> weights;
  double sum = 0;
  for (const Value& value : list) {
    if (!value.is_number() || !(value.as_double() >= 0) || !(value.as_double() <= 1e9)) {
      throw ConfigError("a weight is no number from 0 to 1e9", where,
                        "e.g. [3, 1] for 75 % and 25 %");
    }
    weights.push_back(value.as_double());
    sum += weights.back();
  }
  if (sum <= 0) throw ConfigError("all weights are 0", where, "give at least one gate a weight");
  return weights;
}

class Split final : public Module {
 public:
  explicit Split(const Args& args)
      : mode_(mode_of(args.string("mode"))),
        n_gates_(args.u32("gates")),
        seed_(args.u64("seed")),
        weights_(initial_weights(args)),
        rng_(seed_),
        live_(std::make_unique<AliasTable>(weights_), std::make_unique<AliasTable>(weights_),
              args.env().quiescence) {}

  uint32_t link(uint32_t connected) override { return std::max(connected, n_gates_); }

  void classify(Context& ctx, Batch& batch) noexcept {
    switch (mode_) {
      case Mode::kRoundRobin:
        return in_turn(ctx, batch.size_pkts);
      case Mode::kRandom:
        for (uint32_t i = 0; i < batch.size_pkts; ++i) {
          ctx.gates[i] = static_cast<GateIndex>(rng_.below(n_gates_));
        }
        return;
      case Mode::kWeighted: {
        const AliasTable& table = live_.read();
        for (uint32_t i = 0; i < batch.size_pkts; ++i) ctx.gates[i] = table.pick(rng_.next());
        return;
      }
      case Mode::kHash:
        return by_flow(ctx, batch);
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb != "set") return Module::command(verb, args);
    if (!has_weights()) {
      throw ConfigError("only the modes weighted and hash have weights", "set", "use another mode");
    }
    if (!args.is_dict() || args.as_dict().size() != 1 || !args["weights"].is_list()) {
      throw ConfigError("expected {weights: [...]}", "set", "give one weight per gate");
    }
    std::vector<double> weights = weights_of(args["weights"].as_list(), n_gates_, "set.weights");
    live_.replace(std::make_unique<AliasTable>(weights), std::make_unique<AliasTable>(weights));
    weights_ = std::move(weights);
    return show();
  }

  [[nodiscard]] std::vector<double> blind_weights() const override {
    return mode_ == Mode::kHash ? std::vector<double>{} : weights_;
  }

  [[nodiscard]] Value show() const override {
    return has_weights() ? Dict{{"gates", n_gates_}, {"weights", weight_list()}}
                         : Dict{{"gates", n_gates_}};
  }

  [[nodiscard]] Dict saved_params() const override {
    return has_weights() ? Dict{{"weights", weight_list()}} : Dict{};
  }

  void adopt(Module& old) noexcept override {
    const auto& other = static_cast<const Split&>(old);
    if (other.seed_ == seed_) rng_ = other.rng_;
    next_gate_ = other.next_gate_ < n_gates_ ? other.next_gate_ : 0;
  }

 private:
  [[nodiscard]] bool has_weights() const {
    return mode_ == Mode::kWeighted || mode_ == Mode::kHash;
  }

  [[nodiscard]] List weight_list() const {
    List list;
    for (const double weight : weights_) list.emplace_back(weight);
    return list;
  }

  std::vector<double> initial_weights(const Args& args) const {
    const List& list = args.list("weights");
    if (list.empty()) {
      if (mode_ == Mode::kWeighted) {
        throw ConfigError("mode weighted needs weights", args.where() + ".weights",
                          "give one weight per gate");
      }
      return std::vector<double>(n_gates_, 1.0);
    }
    if (!has_weights()) {
      throw ConfigError("mode " + args.string("mode") + " has no weights",
                        args.where() + ".weights", "leave them out, or use mode weighted or hash");
    }
    return weights_of(list, n_gates_, args.where() + ".weights");
  }

  void in_turn(Context& ctx, uint32_t n) {
    uint32_t gate = next_gate_;
    for (uint32_t i = 0; i < n; ++i) {
      ctx.gates[i] = static_cast<GateIndex>(gate);
      gate = gate + 1 == n_gates_ ? 0 : gate + 1;
    }
    next_gate_ = gate;
  }

  void by_flow(Context& ctx, Batch& batch) {
    const AliasTable& table = live_.read();
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      if (batch[i]->len_bytes() < net::kEthBytes) [[unlikely]] {
        ctx.gates[i] = 0;
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      ctx.gates[i] = table.pick(hash_flow(*batch[i], seed_));
    }
  }

  const Mode mode_;
  const uint32_t n_gates_;
  const uint64_t seed_;
  std::vector<double> weights_;
  Rng rng_;
  uint32_t next_gate_ = 0;
  LiveTable<AliasTable> live_;
};

const Register<Split> kSplit{{
    .kind = "split",
    .state = StateOf::kNone,
    .help = "Spreads packets over gates: in turn, at random, by weight, or by flow.",
    .params = {{.name = "mode",
                .type = ParamType::kString,
                .default_value = "round_robin",
                .help =
                    "round_robin, random (uniform), weighted (random), or hash (packets of a flow "
                    "stay together)",
                .choices = {"round_robin", "random", "weighted", "hash"}},
               {.name = "gates",
                .type = ParamType::kInt,
                .help = "how many gates to use, from 0 on",
                .min = 1,
                .max = kMaxSplitGates},
               {.name = "weights",
                .type = ParamType::kList,
                .default_value = List{},
                .help = "one per gate: its share of packets (weighted) or of flows (hash)"},
               {.name = "seed",
                .type = ParamType::kInt,
                .default_value = 1,
                .help = "of the random draws and the flow hash; same seed, same choices",
                .min = 0}},
    .drops = {&reason::kTooShort},
    .notes = "A flow is IP addresses, protocol and ports; of fragments, addresses and protocol; of "
             "other frames, the Ethernet header. Live command: set {weights}.",
}};

}  // namespace
}  // namespace batchplane
