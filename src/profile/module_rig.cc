// SPDX-License-Identifier: BSD-3-Clause
#include "profile/module_rig.h"

#include <x86intrin.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kMaxBatches = 16;
constexpr uint32_t kStepTimes = 4096;
constexpr uint32_t kLongestSpin = 256;

constexpr uint32_t kMaxLooks = 100'000;   // polls until the frames have arrived
constexpr uint32_t kLooksPerYield = 100;  // another thread may have to deliver the frames

// Name of an input's port; empty when it has none.
std::string port_of(const Graph& graph, const Instance& instance) {
  if (instance.info->feed != Feed::kPort) return "";
  const auto spec = std::ranges::find(graph.spec.modules, instance.name, &ModuleSpec::name);
  return spec->params.at("port").as_string();
}

}  // namespace

uint64_t begin_cycles() {
  _mm_mfence();
  _mm_lfence();
  const uint64_t cycles = __rdtsc();
  _mm_lfence();
  return cycles;
}

uint64_t end_cycles() {
  unsigned aux = 0;
  const uint64_t cycles = __rdtscp(&aux);
  _mm_lfence();
  return cycles;
}

// The widest gap between neighbours. The longest times are disturbed ones, far apart on any clock.
uint64_t step_of(std::vector<uint64_t> times) {
  std::ranges::sort(times);
  uint64_t widest = 0;
  for (size_t i = times.size() / 20 + 1; i < times.size() / 2; ++i) {
    widest = std::max(widest, times[i] - times[i - 1]);
  }
  return widest;
}

double clock_step_ns() {
  static const double step_ns = [] {
    std::vector<uint64_t> times;
    for (uint32_t i = 0; i < kStepTimes; ++i) {
      const uint64_t begin = begin_cycles();
      for (uint32_t k = 0; k < i % kLongestSpin; ++k) asm volatile("" ::: "memory");
      times.push_back(end_cycles() - begin);
    }
    const auto step = static_cast<double>(step_of(std::move(times)));
    return step / TscClock::instance().cycles_per_ns();
  }();
  return step_ns;
}

ModuleRig::ModuleRig(Stage& stage, const std::vector<Member>& members, std::function<void()> stir,
                     Side side)
    : stage_(stage),
      instance_(*members.front().instance),
      stir_(std::move(stir)),
      is_polled_(instance_.node == nullptr || side == Side::kTaken),
      hot_(std::max(kHotPkts, exec::kMaxBatchPkts), nullptr),
      work_(hot_.size() + 8, nullptr) {
  if (const std::string port = port_of(stage.graph(), instance_); !port.empty()) {
    port_ = stage.graph().env->port(port).get();
    ring_ = dynamic_cast<RingPort*>(port_);
    feeder_ = stage.feeder_of(port);
  }
  for (const Member& member : members) {
    // The pointer that the executor passes to the node's run function.
    void* const module = member.instance->node == nullptr ? nullptr : member.instance->node->module;
    turns_.push_back({module, &member.arrived->pkts, member.vary});
    if (is_polled_) break;  // each input has its own port
  }
}

ModuleRig::~ModuleRig() { rest(); }

void ModuleRig::rest() {
  stage_.collect();
  for (Packet*& pkt : hot_) {
    if (pkt != nullptr) PacketPool::free_bulk(&pkt, 1);
    pkt = nullptr;
  }
}

uint32_t ModuleRig::batches_of(uint32_t n_pkts) const {
  uint32_t most = kHotPkts;
  if (ring_ != nullptr) most = std::min(most, ring_->ring().capacity());
  if (instance_.info->shape == Shape::kQueue) {
    most = std::min(most, std::max(instance_.module->max_held_pkts(), 1U));
  }
  return std::clamp(most / n_pkts, 1U, kMaxBatches);
}

void ModuleRig::warm_up(uint32_t n_pkts) {
  for (uint32_t i = 0; i < 16 + turns_.size(); ++i) (void)run(n_pkts);
}

std::optional<uint64_t> ModuleRig::run(uint32_t n_pkts) {
  const uint32_t n_batches = batches_of(n_pkts);
  if (stir_) {
    stir_();
    stage_.collect();
  }
  stage_.read_clock();
  stage_.ctx().batch_limit_pkts = n_pkts;
  // The context is shared with rigs for other workers' modules.
  stage_.ctx().worker_index = stage_.graph().worker_index_of(instance_);
  const auto cycles =
      is_polled_ ? run_polls(n_pkts, n_batches) : std::optional(run_batches(n_pkts, n_batches));
  stage_.collect();
  return cycles;
}

// Writes the next packets in their order of arrival, so that neighbours stay neighbours.
void ModuleRig::restore(uint32_t at, uint32_t n_pkts, uint32_t turn) {
  Turn& from = turns_[turn];
  for (uint32_t i = at; i < at + n_pkts; ++i) {
    if (hot_[i] == nullptr) stage_.take(&hot_[i], 1);
    write_image((*from.images)[from.next_image], *hot_[i]);
    if (from.vary) from.vary(*hot_[i]);
    if (++from.next_image == from.images->size()) from.next_image = 0;
    work_[i] = hot_[i];
  }
}

uint64_t ModuleRig::run_batches(uint32_t n_pkts, uint32_t n_batches) {
  void* modules[kMaxBatches];
  for (uint32_t b = 0; b < n_batches; ++b) {
    modules[b] = turns_[next_turn_].module;
    restore(b * n_pkts, n_pkts, next_turn_);
    if (++next_turn_ == turns_.size()) next_turn_ = 0;
  }
  Context& ctx = stage_.ctx();
  const auto function = instance_.node->run;
  Packet** pkts = work_.data();
  const bool is_end = instance_.node->after == exec::After::kEnd;
  const uint64_t begin = begin_cycles();
  for (uint32_t b = 0; b < n_batches; ++b, pkts += n_pkts) {
    function(modules[b], ctx, pkts, n_pkts);
    if (ctx.n_fates != 0) [[unlikely]]
      stage_.settle();
  }
  // Freeing is part of a terminal's cost; the engine frees once per run.
  if (is_end) ctx.flush_free();
  const uint64_t cycles = end_cycles() - begin;
  for (uint32_t i = 0; i < n_pkts * n_batches; ++i) {
    if (is_end || work_[i] == nullptr) hot_[i] = nullptr;
  }
  return cycles;
}

// Fills the input, untimed. Sources make their own packets.
bool ModuleRig::fill_input(uint32_t n_pkts) {
  if (instance_.info->shape == Shape::kQueue) {
    (void)run_batches(n_pkts, 1);
    return true;
  }
  if (feeder_ != nullptr) return send_in(n_pkts);
  if (ring_ == nullptr) return true;
  if (ring_->ring().free_slots() < n_pkts) return false;
  restore(0, n_pkts, 0);
  for (uint32_t i = 0; i < n_pkts; ++i) {
    const BurstSlot slot = BurstSlot::make(hot_[i], hot_[i]->len_bytes(), hot_[i]->meta().entry_ns);
    ring_->ring().enqueue(&slot, 1);
    hot_[i] = nullptr;
  }
  return true;
}

// Fills the input over a wire, after discarding all frames that wait there.
bool ModuleRig::send_in(uint32_t n_pkts) {
  while (const uint32_t n = port_->rx_burst(work_.data(), kHotPkts, stage_.ctx().now_ns)) {
    PacketPool::free_bulk(work_.data(), n);
  }
  restore(0, n_pkts, 0);
  const uint32_t sent = feeder_->tx_burst(work_.data(), n_pkts);
  std::fill_n(hot_.begin(), sent, nullptr);
  for (uint32_t look = 0; sent == n_pkts && look < kMaxLooks; ++look) {
    const exec::RingCounts counts = port_->ring_counts();
    if (counts.ring_pkts == 0 || counts.waiting_pkts >= n_pkts) return true;
    if (look % kLooksPerYield == kLooksPerYield - 1) std::this_thread::yield();
  }
  return false;
}

std::optional<uint64_t> ModuleRig::run_polls(uint32_t n_pkts, uint32_t n_batches) {
  if (!fill_input(n_pkts * n_batches)) return std::nullopt;
  Context& ctx = stage_.ctx();
  const auto poll = instance_.info->poll;
  Module& module = *instance_.module;
  uint32_t polled = 0;
  // A poll may write a few entries past the packets it returns; work_ has room for them.
  const uint64_t begin = begin_cycles();
  for (uint32_t b = 0; b < n_batches; ++b) {
    polled += poll(module, ctx, work_.data() + polled, n_pkts);
  }
  const uint64_t cycles = end_cycles() - begin;
  if (polled != 0) PacketPool::free_bulk(work_.data(), polled);
  if (polled != n_pkts * n_batches) return std::nullopt;
  return cycles;
}

}  // namespace batchplane::profile
