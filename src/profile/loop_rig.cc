// SPDX-License-Identifier: BSD-3-Clause
#include "profile/loop_rig.h"

#include "base/clock.h"
#include "profile/module_rig.h"
#include "profile/stand_in.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kMaxLoops = 16;
constexpr uint64_t kEntrySpacingNs = 100;

void add(PipelineSpec& spec, const std::string& name, const std::string& kind, Dict params) {
  ModuleSpec module;
  module.name = name;
  module.kind = kind;
  module.params = std::move(params);
  spec.modules.push_back(std::move(module));
}

PipelineSpec spec_of(const LoopCase& what) {
  PipelineSpec spec;
  spec.name = "profile_loop";
  spec.engine.batch_pkts = what.batch_pkts;
  spec.ports.push_back({"link", "ring", {{"size_pkts", LoopRig::kRingPkts}}});
  add(spec, "in", "port_in", {{"port", "link"}});
  std::string before = "in";
  if (what.middle == Middle::kSplit) add(spec, "middle", "split", {{"gates", what.gates}});
  if (what.middle == Middle::kBuffer) {
    add(spec, "middle", "merge", {});
    spec.modules.back().trigger_pkts = what.trigger_pkts;
  }
  if (what.middle != Middle::kNothing) {
    spec.edges.push_back({"in", "0", "middle"});
    before = "middle";
  }
  for (uint32_t g = 0; g < what.gates; ++g) {
    const std::string name = "out_" + std::to_string(g);
    add(spec, name, "sink", {});
    spec.edges.push_back({before, std::to_string(g), name});
  }
  return spec;
}

std::unique_ptr<Graph> graph_of(const LoopCase& what) {
  const PipelineSpec spec = spec_of(what);
  auto env = std::make_unique<Environment>();
  env->batch_limit_pkts = what.batch_pkts;
  env->ports["link"] = std::make_shared<RingPort>(LoopRig::kRingPkts, false, "profile_loop_link");
  return build_graph(spec, std::move(env));
}

}  // namespace

LoopRig::LoopRig(const LoopCase& what, PacketPool& pool)
    : what_(what),
      pool_(pool),
      graph_(graph_of(what)),
      meter_(std::make_unique<exec::FlowMeter>(static_cast<uint32_t>(graph_->flow_names.size()))),
      worker_(std::make_unique<Worker>(Worker::Options{.batch_limit_pkts = what.batch_pkts}, &pool,
                                       nullptr)),
      ring_(static_cast<RingPort*>(graph_->env->port("link").get())),
      images_(stand_in_for_input(*graph_, "in")) {
  Task& task = *graph_->tasks.front();
  task.attach(worker_->context(), worker_->clock(), *meter_);
  worker_->set_tasks({&task}, meter_.get());
}

LoopRig::~LoopRig() { worker_->drain(kRingPkts); }

// Packets get separate entry times, as from a generator, so that metering cannot book them
// together.
void LoopRig::fill() {
  const uint32_t n = n_loops() * what_.batch_pkts;
  const uint64_t now_ns = worker_->clock().now_ns();
  for (uint32_t i = 0; i < n; ++i) {
    Packet* pkt = nullptr;
    if (!pool_.alloc_bulk(&pkt, 1)) throw ConfigError("the packet pool is empty", "profile");
    write_image(images_[i % images_.size()], *pkt);
    const BurstSlot slot =
        BurstSlot::make(pkt, pkt->len_bytes(), now_ns - (n - i) * kEntrySpacingNs);
    ring_->ring().enqueue(&slot, 1);
  }
}

uint32_t LoopRig::n_loops() const { return std::min(kRingPkts / what_.batch_pkts, kMaxLoops); }

double LoopRig::run() {
  fill();
  const uint64_t begin = begin_cycles();
  for (uint32_t i = 0; i < n_loops(); ++i) (void)worker_->loop_once();
  const auto cycles = static_cast<double>(end_cycles() - begin);
  return cycles / TscClock::instance().cycles_per_ns() / n_loops();
}

double LoopRig::run_empty() {
  const uint64_t begin = begin_cycles();
  for (uint32_t i = 0; i < kEmptyLoops; ++i) (void)worker_->loop_once();
  const auto cycles = static_cast<double>(end_cycles() - begin);
  return cycles / TscClock::instance().cycles_per_ns() / kEmptyLoops;
}

}  // namespace batchplane::profile
