// SPDX-License-Identifier: BSD-3-Clause
// exec_world.h - small graphs for the executor alone: packets are structs, modules follow fixed
// rules, time is virtual.
//
// What a module does to a packet depends on the packet and the module only, so that a second
// implementation (engine_oracle.h) can be held against the executor step by step.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "base/rng.h"
#include "exec/executor.h"

namespace batchplane::property {

struct Pkt {
  uint64_t id = 0;  // in order of arrival
  uint32_t flow = 0;
  uint64_t entry_ns = 0;
  uint16_t state = 0;
};

inline uint64_t mix(uint64_t a, uint64_t b) { return Rng(a * 0x9e3779b97f4a7c15ULL + b).next(); }

enum class Role : uint8_t { kInPlace, kSplitter, kTerminal };

// Rank = index; every target has a higher one.
struct NodePlan {
  Role role = Role::kInPlace;
  std::vector<uint32_t> targets;  // per gate
  int drop_target = -1;
  uint32_t drop_one_in = 0;  // packets; 0 = drops none
  uint32_t keep_one_in = 0;  // flows whose packets wait inside the module; 0 = keeps none
  uint32_t emit_at = 0;      // kept packets at which it lets all of them go
  uint32_t trigger_pkts = 0;
  uint32_t release_at_pkts = 0;
  uint64_t age_limit_ns = 0;
};

struct Plan {
  uint32_t batch_pkts = 32;
  uint64_t seed = 0;
  std::vector<NodePlan> nodes;

  [[nodiscard]] uint32_t gate_of(uint32_t node, const Pkt& pkt) const {
    return static_cast<uint32_t>(mix(seed + node, pkt.flow) % nodes[node].targets.size());
  }
  [[nodiscard]] bool drops(uint32_t node, const Pkt& pkt) const {
    const uint32_t one_in = nodes[node].drop_one_in;
    return one_in != 0 && mix(seed + 1000 + node, pkt.id) % one_in == 0;
  }
  [[nodiscard]] bool keeps(uint32_t node, const Pkt& pkt) const {
    const uint32_t one_in = nodes[node].keep_one_in;
    return one_in != 0 && mix(seed + 2000 + node, pkt.flow) % one_in == 0;
  }
  // Ways into a node: edges, drop gates, and the task's input for node 0.
  [[nodiscard]] std::vector<uint32_t> inputs() const {
    std::vector<uint32_t> n(nodes.size(), 0);
    n[0] = 1;
    for (const NodePlan& node : nodes) {
      for (const uint32_t target : node.targets) ++n[target];
      if (node.drop_target >= 0) ++n[static_cast<uint32_t>(node.drop_target)];
    }
    return n;
  }
};

struct Firing {
  uint32_t node;
  uint32_t size_pkts;
  exec::Cause cause;
  bool operator==(const Firing&) const = default;
};
struct Leave {
  uint32_t node;
  uint64_t id;
  bool operator==(const Leave&) const = default;
};
struct Log {
  std::vector<Firing> firings;
  std::vector<Leave> left;
  std::vector<Leave> dropped;
};

class World;

struct WorldContext : exec::Context<Pkt*> {
  World* world = nullptr;
};

struct WorldTraits {
  using Handle = Pkt*;
  using Context = WorldContext;
  using Node = exec::Node<WorldTraits>;
  using Order = exec::DepthOrder;
  struct Clock {
    uint64_t now = 0;
    [[nodiscard]] uint64_t now_ns() const { return now; }
  };
  static uint64_t task_entry_ns(Pkt* pkt) { return pkt->entry_ns; }
  static uint16_t path_state(Pkt* pkt) { return pkt->state; }
  static void set_path_state(Pkt* pkt, uint16_t state) { pkt->state = state; }
  static void set_drop_reason(Pkt*, uint16_t) {}
  static void prefetch_meta(Pkt*) {}
  static void prefetch_data(Pkt*) {}
  static void begin_chain(Context&) noexcept {}
  static void before_run(Context&, Node&, const exec::Batch<Pkt*>&) noexcept {}
  static void on_run(Context&, Node&, const exec::Batch<Pkt*>&) noexcept {}
  static void charge_firing(Context& /*ctx*/, uint32_t /*n_pkts*/) noexcept {}
  static void on_fire(Context& /*ctx*/, exec::Cause /*cause*/) noexcept {}
  static void on_hold(Context&, Node&, Pkt* const*, uint32_t) noexcept {}
  static uint16_t overflow_reason() noexcept { return 1; }
  static uint16_t queue_full_reason() noexcept { return 2; }
  static uint16_t early_drop_reason() noexcept { return 3; }
  static void free(Context& ctx, Node& node, Pkt* pkt, uint16_t reason) noexcept;
};

// The executor on a plan. Memory is reserved up front: steps allocate nothing.
class World {
 public:
  using Executor = exec::Executor<WorldTraits>;
  static constexpr uint32_t kMaxPkts = 1U << 15;
  static constexpr uint32_t kQueuePkts = 4096;

  explicit World(const Plan& plan) : plan_(plan), meter_(1) {
    const auto n = static_cast<uint32_t>(plan_.nodes.size());
    pkts_.reserve(kMaxPkts);
    for (auto* log : {&log_.left, &log_.dropped}) log->reserve(kMaxPkts);
    log_.firings.reserve(4 * kMaxPkts);
    nodes_.resize(n);
    modules_.resize(n);
    for (uint32_t i = 0; i < n; ++i) {
      modules_[i].world = this;
      modules_[i].index = i;
      lay_out(i);
    }
    link();
    ctx_->world = this;
    ctx_->batch_limit_pkts = plan_.batch_pkts;
    executor_ = std::make_unique<Executor>(std::span(nodes_), *ctx_, clock_, meter_);
  }

  Executor& executor() { return *executor_; }
  WorldTraits::Node& node(uint32_t i) { return nodes_[i]; }
  [[nodiscard]] const Log& log() const { return log_; }
  void set_now(uint64_t now_ns) { clock_.now = now_ns; }

  // What a worker's loop does before it polls.
  void begin_loop() {
    executor_->read_clock();
    executor_->settle_changes();
    executor_->check_ages();
  }
  void run(const Pkt* first, uint32_t n, bool is_instrumented = false) {
    Pkt* batch[exec::kMaxBatchPkts + 8];
    uint64_t bound_ns = exec::kNeverNs;
    for (uint32_t i = 0; i < n; ++i) {
      pkts_.push_back(first[i]);
      batch[i] = &pkts_.back();
      bound_ns = std::min(bound_ns, first[i].entry_ns);
    }
    executor_->run(nodes_[0], {batch, n, bound_ns}, is_instrumented);
  }
  // A timer of module i: it lets go of what it keeps.
  void tick(uint32_t i) {
    emit_kept(i);
    executor_->settle_module(nodes_[i]);
  }
  [[nodiscard]] exec::NodeTotals ran(uint32_t i) const { return modules_[i].ran; }
  [[nodiscard]] uint64_t kept_pkts() const {
    uint64_t kept = 0;
    for (const Module& module : modules_) kept += module.n_kept;
    return kept;
  }
  [[nodiscard]] uint64_t oldest_held_ns(uint32_t i) const {
    uint64_t oldest = exec::kNeverNs;
    const auto& queue = *queues_[i];
    for (uint32_t k = 0; k < queue.size_pkts; ++k)
      oldest = std::min(oldest, queue.pkts[k]->entry_ns);
    return oldest;
  }
  void note_drop(const WorldTraits::Node& node, Pkt* pkt) {
    log_.dropped.push_back({node.rank, pkt->id});
  }

 private:
  struct Module {
    World* world = nullptr;
    uint32_t index = 0;
    exec::NodeTotals ran;  // as counted here, call by call
    std::vector<Pkt*> kept;
    uint32_t n_kept = 0;
    uint64_t seen_firings[exec::kCauses] = {};
  };

  void lay_out(uint32_t i) {
    WorldTraits::Node& node = nodes_[i];
    const NodePlan& plan = plan_.nodes[i];
    node.run = &World::run_node;
    node.module = &modules_[i];
    node.rank = static_cast<uint16_t>(i);
    drops_.push_back(std::make_unique<uint64_t[]>(4));
    node.drops = drops_.back().get();
    drops_.push_back(std::make_unique<uint64_t[]>(4));
    node.handed_on = drops_.back().get();
    queues_.push_back(std::make_unique<exec::Queue<Pkt*>>());
    slots_.emplace_back(kQueuePkts + 8);
    exec::Queue<Pkt*>& queue = *queues_.back();
    queue.rank = node.rank;
    queue.pkts = slots_.back().data();
    queue.capacity_pkts = kQueuePkts;
    queue.trigger_pkts = static_cast<uint16_t>(plan.trigger_pkts);
    queue.release_at_pkts = queue.turn_pkts = static_cast<uint16_t>(plan.release_at_pkts);
    queue.age_limit_ns = plan.age_limit_ns;
    node.queue = &queue;
    modules_[i].kept.resize(kQueuePkts);
  }

  void link() {
    const std::vector<uint32_t> inputs = plan_.inputs();
    targets_.resize(nodes_.size());
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      WorldTraits::Node& node = nodes_[i];
      const NodePlan& plan = plan_.nodes[i];
      for (const uint32_t target : plan.targets) targets_[i].push_back(queues_[target].get());
      node.targets = targets_[i].data();
      node.n_gates = static_cast<uint16_t>(plan.targets.size());
      node.n_inputs = static_cast<uint16_t>(inputs[i]);
      if (plan.drop_target >= 0)
        node.drop_target = queues_[static_cast<uint32_t>(plan.drop_target)].get();
      if (plan.role == Role::kSplitter) node.after = exec::After::kScatter;
      if (plan.role != Role::kInPlace) continue;
      node.after = exec::After::kEnqueue;
      node.next = &nodes_[plan.targets[0]];
      if (plan.keep_one_in == 0 && inputs[plan.targets[0]] == 1)
        node.next->sole_predecessor = &node;
    }
  }

  void emit_kept(uint32_t i) {
    Module& module = modules_[i];
    uint32_t sent = 0;
    for (; sent < module.n_kept; ++sent) {
      Pkt* pkt = module.kept[sent];
      const uint32_t gate = plan_.nodes[i].role == Role::kSplitter ? plan_.gate_of(i, *pkt) : 0;
      if (!ctx_->emit(static_cast<exec::GateIndex>(gate), pkt)) break;
    }
    std::copy(module.kept.begin() + sent, module.kept.begin() + module.n_kept, module.kept.begin());
    module.n_kept -= sent;
  }

  // The firing that led here, if one did: the cause whose count has risen.
  void note_firing(uint32_t i, uint32_t size_pkts) {
    for (uint32_t c = 0; c < exec::kCauses; ++c) {
      uint64_t& seen = modules_[i].seen_firings[c];
      if (queues_[i]->causes[c].firings == seen) continue;
      ++seen;
      log_.firings.push_back({i, size_pkts, static_cast<exec::Cause>(c)});
    }
  }

  static void run_node(void* self, WorldContext& ctx, Pkt** pkts, uint32_t n_pkts) noexcept {
    exec::Batch<Pkt*> batch{pkts, n_pkts, exec::kNeverNs};
    Module& module = *static_cast<Module*>(self);
    World& world = *module.world;
    const uint32_t i = module.index;
    const NodePlan& plan = world.plan_.nodes[i];
    module.ran.batches += 1;
    module.ran.pkts += batch.size_pkts;
    world.note_firing(i, batch.size_pkts);
    for (uint32_t k = 0; k < batch.size_pkts; ++k) {
      Pkt& pkt = *batch[k];
      if (world.plan_.drops(i, pkt)) {
        ctx.drop(batch, k, 0);
      } else if (world.plan_.keeps(i, pkt)) {
        module.kept[module.n_kept++] = ctx.keep(batch, k);
      } else if (plan.role == Role::kSplitter) {
        ctx.gates[k] = static_cast<exec::GateIndex>(world.plan_.gate_of(i, pkt));
      } else if (plan.role == Role::kTerminal) {
        world.log_.left.push_back({i, pkt.id});
      }
    }
    if (plan.emit_at != 0 && module.n_kept >= plan.emit_at) world.emit_kept(i);
  }

  const Plan plan_;
  std::unique_ptr<WorldContext> ctx_ = std::make_unique<WorldContext>();
  WorldTraits::Clock clock_;
  exec::FlowMeter meter_;
  std::vector<Pkt> pkts_;
  std::vector<WorldTraits::Node> nodes_;
  std::vector<Module> modules_;
  std::vector<std::unique_ptr<exec::Queue<Pkt*>>> queues_;
  std::vector<std::vector<Pkt*>> slots_;
  std::vector<std::vector<exec::Queue<Pkt*>*>> targets_;
  std::vector<std::unique_ptr<uint64_t[]>> drops_;
  std::unique_ptr<Executor> executor_;
  Log log_;
};

inline void WorldTraits::free(Context& ctx, Node& node, Pkt* pkt, uint16_t) noexcept {
  ctx.world->note_drop(node, pkt);
}

}  // namespace batchplane::property
