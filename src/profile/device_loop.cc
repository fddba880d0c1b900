// SPDX-License-Identifier: BSD-3-Clause
#include "profile/device_loop.h"

#include <algorithm>
#include <stdexcept>

#include "base/clock.h"
#include "base/error.h"
#include "core/module/kind.h"
#include "spec/stages.h"

namespace batchplane::profile {
namespace {

constexpr uint64_t kMostNs = 20'000'000'000;
constexpr uint64_t kNeverByAgeNs = 1'000'000'000'000'000;

uint64_t now_ns() { return TscClock::instance().now_ns(); }

std::unique_ptr<Module> make_stage(Environment& env, const ModuleInfo& info,
                                   const ModuleSpec& module, const std::string& on,
                                   uint32_t max_batch_pkts) {
  Dict params = module.params;
  params["device"] = Dict{{"on", List{on}},
                          {"batch_pkts", max_batch_pkts},
                          {"depth", DeviceLoop::kInside},
                          {"age_limit_ns", kNeverByAgeNs},
                          {"idle", "hold"},
                          {"size_pkts", DeviceLoop::kInside * max_batch_pkts}};
  std::vector<ConfigError> errors;
  Args args(info.params, params, "modules." + module.name, errors);
  if (!errors.empty()) throw errors.front();
  args.set_env(&env);
  args.set_name(module.name);
  auto stage = info.make(args);
  stage->set_feeders({0});
  return stage;
}

const ModuleInfo& stage_info(const std::string& kind) {
  const ModuleInfo* const info = find_module_kind(kind + kStageSuffix);
  if (info != nullptr) return *info;
  throw ConfigError("a " + kind + " can run on no device", "modules",
                    "batchplane modules names those that can");
}

// A module whose results alone come back from a device leaves the packets' bytes as they are.
bool changes_bytes(Module& module) {
  try {
    Kernel* const kernel = module.kernel();
    return kernel == nullptr || kernel->rewriting() != nullptr;
  } catch (const ConfigError&) {
    return true;
  }
}

}  // namespace

DeviceLoop::DeviceLoop(Environment& env, PacketPool& pool, const ModuleSpec& module,
                       const std::string& on, uint32_t max_batch_pkts,
                       const std::vector<PacketImage>& images)
    : pool_(pool),
      images_(images),
      info_(stage_info(module.kind)),
      module_(make_stage(env, info_, module, on, max_batch_pkts)),
      stage_(dynamic_cast<offload::Stage&>(*module_)),
      changes_bytes_(changes_bytes(stage_.runner().module())) {
  (void)stage_.runner().module().link(1);
  ctx_->meter = &meter_;
  ctx_->pool = &pool;
  for (const PacketImage& image : images)
    mean_pkt_bytes_ += static_cast<double>(image.bytes.size());
  mean_pkt_bytes_ /= static_cast<double>(std::max<size_t>(1, images.size()));
}

DeviceLoop::~DeviceLoop() {
  module_->give_up_held([](Packet* pkt) { PacketPool::free_bulk(&pkt, 1); });
  if (n_free_ != 0) PacketPool::free_bulk(pkts_.data(), n_free_);
}

bool DeviceLoop::has_own_memory() const {
  const offload::Device* const device = stage_.device_at(0);
  return device != nullptr && device->options().has_own_memory();
}

std::optional<double> DeviceLoop::watts() const {
  const offload::Device* const device = stage_.device_at(0);
  return device == nullptr ? std::nullopt : device->watts();
}

DeviceTimes DeviceLoop::run(uint32_t n_pkts, double ms, uint32_t n_inside) {
  begin(n_pkts, n_inside);
  const uint64_t began_ns = now_ns();
  const auto wanted_ns = static_cast<uint64_t>(ms * 1e6);
  for (uint64_t ns = 0; ns < wanted_ns || (!has_enough() && ns < kMostNs);
       ns = now_ns() - began_ns) {
    step();
  }
  return end();
}

std::pair<DeviceTimes, DeviceTimes> DeviceLoop::run_both(DeviceLoop& one, DeviceLoop& other,
                                                         uint32_t n_pkts, double ms) {
  one.begin(n_pkts, kInside);
  other.begin(n_pkts, kInside);
  const uint64_t began_ns = now_ns();
  const auto wanted_ns = static_cast<uint64_t>(ms * 1e6);
  const auto have_enough = [&] { return one.has_enough() && other.has_enough(); };
  for (uint64_t ns = 0; ns < wanted_ns || (!have_enough() && ns < kMostNs);
       ns = now_ns() - began_ns) {
    one.step();
    other.step();
  }
  return {one.end(), other.end()};
}

void DeviceLoop::begin(uint32_t n_pkts, uint32_t n_inside) {
  n_pkts_ = n_pkts;
  times_ = {};
  feed_ns_ = fed_pkts_ = first_end_ns_ = last_end_ns_ = 0;
  window_jobs_ = window_run_ns_ = timed_jobs_ = 0;
  ctx_->batch_limit_pkts = std::min(n_pkts, exec::kMaxBatchPkts);
  (void)stage_.command("device", Dict{{"batch_pkts", n_pkts}});
  jobs_before_ = stage_.counts().done[0].jobs.load(std::memory_order_relaxed);
  run_ns_before_ = stage_.counts().done[0].run_ns.load(std::memory_order_relaxed);
  all_pkts_ = n_inside * n_pkts;
  pkts_.assign(size_t{all_pkts_} + exec::kMaxBatchPkts, nullptr);
  if (!pool_.alloc_bulk(pkts_.data(), all_pkts_))
    throw std::runtime_error("the pool of packets is too small");
  n_free_ = all_pkts_;
  for (uint32_t i = 0; i < all_pkts_; ++i) restore(*pkts_[i]);
}

// A failed device finishes no job, because the worker runs them itself: the measurement then ends
// after kMostBatches.
bool DeviceLoop::has_enough() const {
  constexpr uint64_t kMostBatches = 10 * DeviceTimes::kTogether * DeviceTimes::kLeast;
  return times_.is_good() || (times_.jobs == 0 && fed_pkts_ > kMostBatches * n_pkts_);
}

void DeviceLoop::step() {
  if (n_free_ >= n_pkts_) put_batch();
  poll();
}

void DeviceLoop::restore(Packet& pkt) {
  write_image(images_[next_image_], pkt);
  if (++next_image_ == images_.size()) next_image_ = 0;
}

void DeviceLoop::put_batch() {
  for (uint32_t done = 0; done < n_pkts_;) {
    const uint32_t n = std::min(n_pkts_ - done, exec::kMaxBatchPkts);
    n_free_ -= n;
    for (uint32_t i = 0; i < n; ++i) {
      // Bytes that are as they came need no writing, which would take longer than all the rest.
      if (changes_bytes_) restore(*pkts_[n_free_ + i]);
      pkts_[n_free_ + i]->meta().drop_reason = 0;
    }
    ctx_->now_ns = now_ns();
    info_.run(module_.get(), *ctx_, &pkts_[n_free_], n);
    feed_ns_ += now_ns() - ctx_->now_ns;
    done += n;
  }
}

// Empty polls are not counted: the worker can spend that time on other work.
void DeviceLoop::poll() {
  const uint64_t sent_before = stage_.counts().pkts.load(std::memory_order_relaxed);
  ctx_->now_ns = now_ns();
  const uint32_t got =
      info_.poll(*module_, *ctx_, &pkts_[n_free_], std::min(n_pkts_, exec::kMaxBatchPkts));
  const uint64_t ended_ns = now_ns();
  for (uint32_t i = 0; i < got; ++i) {
    const uint16_t fate = pkts_[n_free_ + i]->meta().drop_reason;
    times_.dropped_pkts += (fate & offload::kDropFate) != 0 ? 1 : 0;
  }
  n_free_ += got;
  fed_pkts_ += got;
  const bool has_sent = stage_.counts().pkts.load(std::memory_order_relaxed) != sent_before;
  if (got != 0 || has_sent) feed_ns_ += ended_ns - ctx_->now_ns;
  note_done(ended_ns);
}

void DeviceLoop::note_done(uint64_t now_ns) {
  const offload::StageCounts::Done& done = stage_.counts().done[0];
  const uint64_t n_new = done.jobs.load(std::memory_order_relaxed) - jobs_before_;
  if (n_new == 0) return;
  const uint64_t run_ns = done.run_ns.load(std::memory_order_relaxed);
  times_.jobs += n_new;
  window_jobs_ += n_new;
  window_run_ns_ += run_ns - run_ns_before_;
  jobs_before_ += n_new;
  run_ns_before_ = run_ns;
  if (window_jobs_ < DeviceTimes::kTogether) return;
  const auto n_jobs = static_cast<double>(window_jobs_);
  const uint64_t inline_ns = stage_.device_at(0) == nullptr ? window_run_ns_ : 0;
  if (first_end_ns_ != 0) {  // in the first window caches and clocks are cold
    timed_jobs_ += window_jobs_;
    // A job that began in the window before brings all of its run time into this one. If it was interrupted,
    // that is more than the worker spent here: no times of such a window count.
    if (feed_ns_ > inline_ns) {
      times_.run_ns.push_back(static_cast<double>(window_run_ns_) / n_jobs);
      times_.feed_ns.push_back(static_cast<double>(feed_ns_ - inline_ns) / n_jobs);
    }
  } else {
    first_end_ns_ = now_ns;
  }
  last_end_ns_ = now_ns;
  window_jobs_ = window_run_ns_ = feed_ns_ = 0;
}

DeviceTimes DeviceLoop::end() {
  if (timed_jobs_ != 0) {
    times_.wall_ns =
        static_cast<double>(last_end_ns_ - first_end_ns_) / static_cast<double>(timed_jobs_);
  }
  DeviceTimes times = std::move(times_);
  const uint64_t until_ns = now_ns() + kMostNs;
  while (n_free_ < all_pkts_ && now_ns() < until_ns) poll();
  const bool is_all = n_free_ == all_pkts_;
  PacketPool::free_bulk(pkts_.data(), n_free_);
  n_free_ = 0;
  if (!is_all) throw std::runtime_error("a device does not give packets back");
  return times;
}

}  // namespace batchplane::profile
