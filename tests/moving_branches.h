// SPDX-License-Identifier: BSD-3-Clause
// moving_branches.h - a graph of branches whose parts move: packets with a number of their flow, and sinks
// that see what is missing, doubled or out of order.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/module/kind.h"
#include "core/module/register.h"
#include "engine_rig.h"
#include "spec/doors.h"
#include "spec/parts.h"

namespace batchplane::moving_branches {

inline constexpr uint32_t kFlows = 6;

// A packet's flow and its number within that.
struct Mark {
  uint64_t flow;
  uint64_t number;
};
inline Mark& mark_of(Packet& pkt) { return *reinterpret_cast<Mark*>(pkt.data()); }

class NumberedInput final : public Module {
 public:
  explicit NumberedInput(const Args& /*args*/) {}
  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    const auto n = static_cast<uint32_t>(rng_.next() % (max + 1));
    if (n == 0 || !ctx.pool->alloc_bulk(pkts, n)) return 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t flow = rng_.next() % kFlows;
      pkts[i]->reset(64);
      pkts[i]->meta() = PacketMeta{.entry_ns = ctx.now_ns, .path_state = 0xbad};
      mark_of(*pkts[i]) = {flow, next_[flow]++};
    }
    return n;
  }

 private:
  uint64_t next_[kFlows] = {};
  Rng rng_{7};
};
inline const Register<NumberedInput> kNumberedInput{
    {.kind = "numbered_input", .state = StateOf::kNone, .help = "Test."}};

class ByFlow final : public Module {
 public:
  explicit ByFlow(const Args& /*args*/) {}
  void classify(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      ctx.gates[i] = static_cast<uint16_t>(mark_of(*batch.pkts[i]).flow);
    }
  }
};
inline const Register<ByFlow> kByFlow{
    {.kind = "by_flow", .state = StateOf::kNone, .help = "Test."}};

// Keeps what it has seen to itself: state of one owner that has to come along.
class InOrder final : public Module {
 public:
  explicit InOrder(const Args& /*args*/) {}
  void consume(Context& ctx, Batch& batch) noexcept {
    for (Packet* pkt : batch) {
      const Mark& mark = mark_of(*pkt);
      wrong_pkts_ += mark.number == next_[mark.flow] ? 0 : 1;
      overtaken_pkts_ += mark.number < next_[mark.flow] ? 1 : 0;
      next_[mark.flow] = mark.number + 1;
    }
    last_worker_.store(ctx.worker_index, std::memory_order_relaxed);
    ctx.free(batch.pkts, batch.size_pkts);
  }
  // Any thread; the rest while nothing runs.
  [[nodiscard]] uint32_t last_worker() const {
    return last_worker_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t wrong_pkts() const { return wrong_pkts_; }
  // Behind a later packet of their flow, or twice: also counts where others were dropped.
  [[nodiscard]] uint64_t overtaken_pkts() const { return overtaken_pkts_; }
  [[nodiscard]] uint64_t pkts_of(uint32_t flow) const { return next_[flow]; }

 private:
  uint64_t next_[kFlows] = {};
  uint64_t wrong_pkts_ = 0;
  uint64_t overtaken_pkts_ = 0;
  std::atomic<uint32_t> last_worker_{0};
};
inline const Register<InOrder> kInOrder{
    {.kind = "in_order", .state = StateOf::kOneOwner, .help = "Test.", .is_egress = true}};

// in -> fork -> a0..a5 -> b0..b5. Flows 0, 2, 4 merge and end in one sink; 1 and 3 come through one queue
// and are told apart behind it; 5 ends by itself.
inline PipelineSpec branches() {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}, {"w2", -1}};
  spec.modules = {{"in", "numbered_input", {}},
                  {"fork", "by_flow", {}},
                  {"m", "merge", {}},
                  {"out", "in_order", {}},
                  {"q", "queue", {{"size_pkts", 128}, {"backpressure", true}}, 0, 0, "w2"},
                  {"c", "by_flow", {}},
                  {"out1", "in_order", {}},
                  {"out3", "in_order", {}},
                  {"out5", "in_order", {}}};
  spec.edges = {{"in", "0", "fork"}, {"m", "0", "out"},  {"q", "0", "c"},
                {"c", "1", "out1"},  {"c", "3", "out3"}, {"b5", "0", "out5"}};
  for (uint32_t f = 0; f < kFlows; ++f) {
    const std::string n = std::to_string(f);
    const std::string a = "a" + n;
    const std::string b = "b" + n;
    spec.modules.push_back({a, "counter", {}, f % 2 == 0 ? 8U : 0U});
    spec.modules.push_back({b, "counter", {}, f == 3 ? 5U : 0U});
    spec.edges.push_back({"fork", n, a});
    spec.edges.push_back({a, "0", b});
    const bool is_queued = f == 1 || f == 3;
    if (f % 2 == 0) spec.edges.push_back({b, "0", "m"});
    if (is_queued) spec.edges.push_back({b, "0", "q"});
    const std::string end = f % 2 == 0 ? "out" : "out" + n;
    spec.flows.push_back({"f" + n, {"in", "fork", a, b, end}, 1'000'000});
  }
  return spec;
}

inline PipelineSpec laid_out(PipelineSpec spec) {
  add_parts(spec, module_kind_facts());
  add_doors(spec, module_kind_facts());
  return spec;
}

inline const InOrder& sink(EngineRig& rig, const std::string& name) {
  return static_cast<const InOrder&>(*rig.engine().graph().at(name).module);
}

inline void expect_in_order(EngineRig& rig) {
  for (const char* name : {"out", "out1", "out3", "out5"}) {
    EXPECT_EQ(sink(rig, name).wrong_pkts(), 0U) << name;
  }
}

// Which module dropped, and why.
inline std::string drops_of(const Snapshot& now) {
  std::string told;
  for (const ModuleSnapshot& module : now.modules) {
    for (size_t r = 0; r < module.drops.size(); ++r) {
      if (module.drops[r] != 0) told += module.name + " " + drop_reasons()[r].name + " ";
    }
  }
  for (size_t r = 0; r < now.other_drops.size(); ++r) {
    if (now.other_drops[r] != 0) told += std::string("(gone) ") + drop_reasons()[r].name + " ";
  }
  return told;
}

inline uint64_t delivered(EngineRig& rig) {
  uint64_t pkts = 0;
  for (const char* name : {"out", "out1", "out3", "out5"}) {
    for (uint32_t f = 0; f < kFlows; ++f) pkts += sink(rig, name).pkts_of(f);
  }
  return pkts;
}

inline PartMove random_move(Rng& rng) {
  static const std::vector<std::string> parts{"a0",  "a1",   "a2", "a3", "a4", "a5",
                                              "b0",  "b1",   "b2", "b3", "b5", "m",
                                              "out", "fork", "in", "q",  "c",  "out1"};
  return {parts[rng.next() % parts.size()], "w" + std::to_string(rng.next() % 3)};
}

}  // namespace batchplane::moving_branches
