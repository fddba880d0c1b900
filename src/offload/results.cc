// SPDX-License-Identifier: BSD-3-Clause
// results.cc - sends the packets that a stage hands out to their gates; registers a stage kind and a results
// kind for every module kind that can run on a device.
#include "core/module/register.h"
#include "offload/stage.h"
#include "spec/stages.h"

namespace batchplane::offload {
namespace {

// How the results module behind a stage finds the stage.
struct StageOf {
  Runner* runner = nullptr;
};
std::shared_ptr<StageOf> stage_of(Environment& env, const std::string& name) {
  return env.shared<StageOf>(name, [] { return new StageOf; });
}

// Gates and drop reasons as the module's function set them, on whichever device it ran.
class Results : public Module {
 public:
  explicit Results(const Args& args)
      : stage_(stage_of(args.env(), stage_of_results(args.name()))) {}
  uint32_t link(uint32_t connected) override { return stage_->runner->module().link(connected); }
  [[nodiscard]] Value show() const override {
    return Dict{{"of", stage_->runner->module().name()}};
  }

 protected:
  static uint16_t take_fate(Context& ctx, Batch& batch, uint32_t i) {
    uint16_t& word = batch[i]->meta().drop_reason;
    const uint16_t fate = word;
    word = 0;
    if ((fate & kDropFate) == 0) return fate;
    ctx.exec::Context<Packet*>::drop(batch, i, static_cast<uint16_t>(fate & ~kDropFate));
    return 0;
  }

 private:
  const std::shared_ptr<StageOf> stage_;
};

class InPlaceResults final : public Results {
 public:
  using Results::Results;
  void process(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) take_fate(ctx, batch, i);
  }
};

class SplitterResults final : public Results {
 public:
  using Results::Results;
  void classify(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) ctx.gates[i] = take_fate(ctx, batch, i);
  }
};

ModuleInfo stage_info(const ModuleInfo& of) {
  ModuleInfo info;
  info.kind = of.kind + kStageSuffix;
  info.state = StateOf::kOneOwner;
  info.help = "A " + of.kind + " that runs on a device.";
  info.params = of.params;
  for (ParamSpec& param : stage_params()) info.params.push_back(std::move(param));
  info.drops = {&reason::kQueueFull, &reason::kRefused};
  info.tables = of.tables;
  info.opens = of.opens;
  info.frame_bytes = of.frame_bytes;
  info.feed = Feed::kQueue;
  info.shape = Shape::kQueue;
  info.is_derived = true;
  info.make = [kind = of.kind](const Args& args) {
    auto stage = std::make_unique<Stage>(args, *find_module_kind(kind));
    stage_of(args.env(), args.name())->runner = &stage->runner();
    return stage;
  };
  info.run = &run_plain<Stage>;
  info.poll = [](Module& module, Context& ctx, Packet** pkts, uint32_t max) noexcept {
    return static_cast<Stage&>(module).poll(ctx, pkts, max);
  };
  return info;
}

template <class T>
void make_as(ModuleInfo& info) {
  info.make = [](const Args& args) { return std::make_unique<T>(args); };
  info.run = &run_plain<T>;
}

ModuleInfo results_info(const ModuleInfo& of) {
  ModuleInfo info;
  info.kind = of.kind + kResultsSuffix;
  info.state = StateOf::kNone;
  info.help = "Where packets of a " + of.kind + " on a device go on.";
  info.gate_names = of.gate_names;
  info.first_named_gate = of.first_named_gate;
  info.drops = of.drops;
  info.shape = of.shape;
  info.is_derived = true;
  if (of.shape == Shape::kSplitter) {
    make_as<SplitterResults>(info);
  } else {
    make_as<InPlaceResults>(info);
  }
  return info;
}

[[maybe_unused]] const bool kAreDerived = [] {
  derive_module_kinds([](const ModuleInfo& of) {
    return of.can_offload ? std::vector<ModuleInfo>{stage_info(of), results_info(of)}
                          : std::vector<ModuleInfo>{};
  });
  return true;
}();

}  // namespace
}  // namespace batchplane::offload
