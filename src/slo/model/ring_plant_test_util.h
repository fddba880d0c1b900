// SPDX-License-Identifier: BSD-3-Clause
// ring_plant_test_util.h - a small plant to be controlled: a source, a ring, a random split and one
// leaf per flow, simulated packet by packet in virtual time. It shares no code with the
// controllers' model.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "base/percentile.h"
#include "base/rng.h"
#include "slo/model/controller.h"
#include "slo/model/model.h"

namespace batchplane::slo {

struct RingPlantLeaf {
  double cost_per_batch_ns = 0;
  double cost_per_pkt_ns = 0;
  double weight = 1;
  double slo_ns = 0;
};

class RingPlant {
 public:
  // Modules: 0 = in, 1 = split, 2 + 2i = leaf i, 3 + 2i = its sink. rate 0: the ring is never
  // empty.
  RingPlant(std::vector<RingPlantLeaf> leaves, double rate_pkts_per_ns, uint64_t seed)
      : leaves_(std::move(leaves)), rate_(rate_pkts_per_ns), rng_(seed), state_(leaves_.size()) {
    model.modules.push_back({.name = "in"});
    model.modules.push_back({.name = "split", .has_buffer = true});
    model.edges.push_back({0, 0, 1});
    exec::ControlTask task{.inputs = {0}, .modules = {1}};
    for (uint32_t i = 0; i < leaves_.size(); ++i) {
      const uint32_t leaf = 2 + 2 * i;
      model.modules.push_back({.name = "leaf_" + std::to_string(i), .has_buffer = true});
      model.modules.push_back(
          {.name = "out_" + std::to_string(i), .has_buffer = true, .is_egress = true});
      model.edges.push_back({1, i, leaf});
      model.edges.push_back({leaf, 0, leaf + 1});
      model.flows.push_back({"flow_" + std::to_string(i), {0, 1, leaf, leaf + 1}});
      task.modules.insert(task.modules.end(), {leaf, leaf + 1});
    }
    model.tasks.push_back(task);
    model.inputs.push_back({.module = 0, .task = 0});
    mark_controlled(model);
    next_arrival_ns_ = rate_ > 0 ? rng_.exponential(1 / rate_) : 0;
  }

  void set_rate(double rate_pkts_per_ns) {
    rate_ = rate_pkts_per_ns;
    next_arrival_ns_ = now_ns_ + (rate_ > 0 ? rng_.exponential(1 / rate_) : 0);
  }
  void set_weight(uint32_t leaf, double weight) { leaves_[leaf].weight = weight; }

  void apply(const Decision& decision) {
    for (const exec::BufferChange& change : decision.changes) {
      State& state = state_[(change.module - 2) / 2];
      state.trigger = change.trigger_pkts;
      if (change.age_limit_ns != exec::kKeepAge) state.age_limit_ns = change.age_limit_ns;
      if (state.trigger == 0)
        fire(static_cast<uint32_t>(&state - state_.data()), state.held.size(),
             exec::Cause::kChange);
    }
  }

  // Runs one period and returns its snapshot.
  Snapshot run(double period_ns, double percentile) {
    begin();
    const double end_ns = now_ns_ + period_ns;
    while (now_ns_ < end_ns) loop();
    return snapshot(period_ns, percentile);
  }

  Model model;
  double front_run_ns = 60;
  double front_pkt_ns = 8;
  uint32_t ring_pkts = 64;
  uint32_t poll_pkts = 0;     // most of a poll; 0: a batch
  double worst_delay_ns = 0;  // since reset

 private:
  struct State {
    uint32_t trigger = 0;
    uint64_t age_limit_ns = exec::kStrandingAge;
    std::deque<double> held;  // entry times
    std::vector<double> delays;
    exec::ModulePeriod period;
  };

  void begin() {
    for (State& state : state_) {
      state.delays.clear();
      state.period = {};
    }
    task_ = {.poll_pkts = poll_pkts};
    runs_ns_.clear();
    worst_delay_ns = 0;
    input_ = {.ring_pkts = ring_pkts};
    looks_ = 0;
  }

  void fire(uint32_t i, size_t n, exec::Cause cause) {
    State& state = state_[i];
    if (n == 0) return;
    if (state.trigger > 0) {
      auto& count = state.period.causes[static_cast<uint32_t>(cause)];
      count.firings += 1;
      count.pkts += n;
    }
    state.period.batches += 1;
    state.period.pkts += n;
    now_ns_ += leaves_[i].cost_per_batch_ns + leaves_[i].cost_per_pkt_ns * static_cast<double>(n);
    for (size_t k = 0; k < n; ++k) {
      state.delays.push_back(now_ns_ - state.held.front());
      worst_delay_ns = std::max(worst_delay_ns, state.delays.back());
      state.held.pop_front();
    }
  }

  bool fire_expired() {
    bool any = false;
    for (;;) {
      uint32_t due = ~0U;
      double due_ns = now_ns_;
      for (uint32_t i = 0; i < state_.size(); ++i) {
        if (state_[i].held.empty()) continue;
        const double at_ns =
            state_[i].held.front() + static_cast<double>(limit_in_force_ns(state_[i]));
        if (at_ns > due_ns) continue;
        due_ns = at_ns;
        due = i;
      }
      if (due == ~0U) return any;
      fire(due, state_[due].held.size(), exec::Cause::kAge);
      any = true;
    }
  }

  [[nodiscard]] static uint64_t limit_in_force_ns(const State& state) {
    return state.age_limit_ns == exec::kStrandingAge ? 1'000'000'000 : state.age_limit_ns;
  }

  void take_arrivals() {
    if (rate_ <= 0) {
      while (ring_.size() < ring_pkts) ring_.push_back(now_ns_);
      return;
    }
    while (next_arrival_ns_ <= now_ns_) {
      ++input_.offered_pkts;
      if (ring_.size() < ring_pkts) {
        ring_.push_back(next_arrival_ns_);
      } else {
        ++input_.lost_pkts;
      }
      next_arrival_ns_ += rng_.exponential(1 / rate_);
    }
  }

  uint32_t pick() {
    double sum = 0;
    for (const RingPlantLeaf& leaf : leaves_) sum += leaf.weight;
    double at = sum * rng_.uniform();
    uint32_t i = 0;
    while (i + 1 < leaves_.size() && at >= leaves_[i].weight) at -= leaves_[i++].weight;
    return i;
  }

  void loop() {
    const double start_ns = now_ns_;
    const bool any_expired = fire_expired();
    take_arrivals();
    const size_t n = std::min<size_t>(ring_.size(), exec::poll_limit_pkts(model, task_));
    if (n == 0) {
      if (any_expired) task_.busy_ns += static_cast<uint64_t>(now_ns_ - start_ns);
      const double idle_from_ns = now_ns_;
      now_ns_ += 50;
      task_.idle_polls += 1;
      task_.idle_ns += static_cast<uint64_t>(now_ns_ - idle_from_ns);
      return;
    }
    now_ns_ += front_run_ns + front_pkt_ns * static_cast<double>(n);
    task_.runs += 1;
    task_.in_pkts += n;
    ++looks_;
    input_.fill_mean_pkts += static_cast<double>(ring_.size());
    std::vector<size_t> arrived(leaves_.size(), 0);
    for (size_t k = 0; k < n; ++k) {
      const uint32_t i = pick();
      state_[i].held.push_back(ring_.front());
      ring_.pop_front();
      ++arrived[i];
    }
    if (rate_ <= 0) take_arrivals();
    for (uint32_t i = 0; i < leaves_.size(); ++i) {
      if (arrived[i] == 0) continue;
      State& state = state_[i];
      state.period.arrived_batches += 1;
      state.period.arrived_pkts += arrived[i];
      if (state.trigger == 0) fire(i, state.held.size(), exec::Cause::kFull);
      while (state.trigger > 0 && state.held.size() >= state.trigger) {
        fire(i, state.trigger, exec::Cause::kFull);
      }
    }
    task_.busy_ns += static_cast<uint64_t>(now_ns_ - start_ns);
    runs_ns_.push_back(now_ns_ - start_ns);
  }

  static double percentile_or_0(const std::vector<double>& values, double p) {
    return values.empty() ? 0 : percentile(values, p);
  }

  Snapshot snapshot(double period_ns, double p) {
    Snapshot out{.now_ns = static_cast<uint64_t>(now_ns_),
                 .period_ns = static_cast<uint64_t>(period_ns)};
    out.modules.resize(model.modules.size());
    out.flows.resize(leaves_.size());
    task_.run_p99_ns = static_cast<uint64_t>(percentile_or_0(runs_ns_, 0.99));
    out.tasks = {task_};
    input_.taken_pkts = task_.in_pkts;
    input_.waiting_pkts = ring_.size();
    if (rate_ <= 0) input_.offered_pkts = task_.in_pkts;
    input_.fill_mean_pkts /= std::max(1.0, static_cast<double>(looks_));
    out.inputs = {input_};
    out.modules[0].pkts = out.modules[1].pkts = task_.in_pkts;
    out.modules[0].batches = out.modules[1].batches = task_.runs;
    out.modules[1].cost = {front_run_ns, front_pkt_ns};
    for (uint32_t i = 0; i < leaves_.size(); ++i) {
      State& state = state_[i];
      exec::ModulePeriod& leaf = out.modules[2 + 2 * i];
      leaf = state.period;
      leaf.cost = {leaves_[i].cost_per_batch_ns, leaves_[i].cost_per_pkt_ns};
      leaf.trigger_pkts = state.trigger;
      leaf.age_limit_ns = limit_in_force_ns(state);
      leaf.held_pkts = static_cast<uint32_t>(state.held.size());
      out.modules[3 + 2 * i].pkts = leaf.pkts;
      out.modules[3 + 2 * i].batches = leaf.batches;
      exec::FlowPeriod& flow = out.flows[i];
      flow.slo_ns = static_cast<uint64_t>(leaves_[i].slo_ns);
      flow.pkts = state.delays.size();
      for (const double delay_ns : state.delays) {
        flow.late_pkts += flow.slo_ns > 0 && delay_ns > leaves_[i].slo_ns ? 1 : 0;
        flow.delay_sum_ns += static_cast<uint64_t>(delay_ns);
        flow.delay_max_ns = std::max(flow.delay_max_ns, static_cast<uint64_t>(delay_ns));
      }
      flow.delay_ns = static_cast<uint64_t>(percentile_or_0(state.delays, p));
    }
    return out;
  }

  std::vector<RingPlantLeaf> leaves_;
  double rate_;
  Rng rng_;
  std::vector<State> state_;
  std::deque<double> ring_;
  std::vector<double> runs_ns_;
  exec::TaskPeriod task_;
  exec::InputPeriod input_;
  uint64_t looks_ = 0;
  double now_ns_ = 0;
  double next_arrival_ns_ = 0;
};

}  // namespace batchplane::slo
