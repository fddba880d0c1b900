// SPDX-License-Identifier: BSD-3-Clause
#include "offload/device.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/patience.h"
#include "base/pin_thread.h"

namespace batchplane::offload {
namespace {

// An idle thread keeps polling for about this long before it yields its core.
constexpr uint32_t kSpins = 100;
constexpr uint32_t kYields = 20'000;
constexpr std::chrono::microseconds kNap{50};

// A job is taken back if its device has not begun it after ten times its predicted time, but no sooner than
// this: on a busy machine threads stall for that long.
constexpr double kOverdueFactor = 10;
constexpr double kMinOverdueNs = 5e6;
constexpr double kLateFactor = 20;

void add(std::atomic<uint64_t>& to, uint64_t n) { to.fetch_add(n, std::memory_order_relaxed); }

}  // namespace

Device::Device(DeviceOptions options, Quiescence* quiescence, uint32_t first_slot)
    : options_(std::move(options)),
      quiescence_(quiescence),
      first_slot_(first_slot),
      random_(options_.faults.seed),
      began_ns_(TscClock::instance().now_ns()),
      loops_(options_.n_threads) {
  if (options_.opencl) {
    own_memory_ = std::make_shared<OpenClDevice>(*options_.opencl, options_.avoided_cores,
                                                 "devices." + options_.name);
  } else if (options_.cuda) {
    own_memory_ = std::make_shared<CudaDevice>(*options_.cuda, "devices." + options_.name);
  }
  std::atomic<uint32_t> n_ready{0};
  std::atomic<int> missing_core{-1};
  for (uint32_t t = 0; t < options_.n_threads; ++t) {
    threads_.emplace_back([this, t, &n_ready, &missing_core] {
      const int core = t < options_.cores.size() ? options_.cores[t] : -1;
      const bool is_pinned = core < 0 || pin_this_thread(core);
      if (core < 0) keep_off_cores(options_.avoided_cores);
      if (!is_pinned) missing_core.store(core, std::memory_order_relaxed);
      n_ready.fetch_add(1, std::memory_order_release);
      if (is_pinned) thread_main(t);
    });
  }
  Patience patience;
  while (n_ready.load(std::memory_order_acquire) != options_.n_threads) patience.wait();
  if (missing_core.load() < 0) return;
  must_stop_.store(true, std::memory_order_release);
  for (std::thread& thread : threads_) thread.join();
  throw ConfigError("core " + std::to_string(missing_core.load()) + " cannot be had",
                    "devices." + options_.name + ".cores", "choose one that `taskset -p $$` lists");
}

Device::~Device() {
  must_stop_.store(true, std::memory_order_release);
  for (std::thread& thread : threads_) thread.join();
}

Lane* Device::attach(Runner& runner, uint32_t max_pkts) {
  if (options_.is_simulated && !options_.laws.contains(runner.info().kind)) {
    throw ConfigError("device '" + options_.name + "' has no law for a " + runner.info().kind,
                      "devices." + options_.name + ".laws",
                      "add " + runner.info().kind + ": {batch: 20us, pkt_ns: 10, byte_ns: 0.1}");
  }
  const auto slot =
      std::ranges::find(lanes_, nullptr, [](const auto& lane) { return lane.load(); });
  if (slot == lanes_.end()) {
    throw ConfigError(
        "more than " + std::to_string(kMaxLanes) + " modules on device '" + options_.name + "'",
        "devices." + options_.name);
  }
  const uint32_t thread = options_.n_threads == 0 ? 0 : n_attached_++ % options_.n_threads;
  auto lane = std::make_unique<Lane>(thread);
  if (own_memory_ != nullptr) {
    lane->kernel =
        std::make_unique<KernelLane>(*own_memory_, runner, max_pkts, options_.check_one_in,
                                     quiescence_, "devices." + options_.name);
    lane->law = lane->kernel->law();
  }
  const auto law = options_.laws.find(runner.info().kind);
  if (law != options_.laws.end()) lane->law = law->second;
  owned_.push_back(std::move(lane));
  slot->store(owned_.back().get(), std::memory_order_release);
  return owned_.back().get();
}

void Device::detach(Lane* lane) {
  for (auto& slot : lanes_) {
    if (slot.load(std::memory_order_relaxed) == lane) slot.store(nullptr);
  }
  Patience patience;
  for (const Loops& loops : loops_) {
    const uint64_t before = loops.n.load(std::memory_order_acquire);
    // The current loop, and the one that began while the slot was being emptied.
    while (loops.n.load(std::memory_order_acquire) < before + 2) patience.wait();
  }
  std::erase_if(owned_, [lane](const auto& owned) { return owned.get() == lane; });
}

bool Device::has_fault(uint32_t one_in) noexcept {
  if (one_in == 0) return false;
  // splitmix64, so that any thread may draw the next number.
  uint64_t x = random_.fetch_add(0x9e3779b97f4a7c15ULL, std::memory_order_relaxed);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return (x ^ (x >> 31)) % one_in == 0;
}

// A job begins when those submitted before it leave room for it: when they have ended, or earlier on a device
// that works on several at once.
void Device::set_times(const Lane& lane, Job& job, uint64_t now_ns) noexcept {
  const double pkt_bytes = static_cast<double>(job.n_bytes) / job.n_pkts;
  double takes_ns = lane.law ? lane.law->time_ns(job.n_pkts, pkt_bytes) : 0;
  job.overdue_ns =
      now_ns + static_cast<uint64_t>(std::max(kOverdueFactor * takes_ns, kMinOverdueNs));
  job.due_ns = now_ns;
  if (!options_.is_simulated) return;
  double busy_ns = lane.law->busy_ns(job.n_pkts, pkt_bytes);
  if (has_fault(options_.faults.late_one_in)) {
    takes_ns *= kLateFactor;
    busy_ns *= kLateFactor;
  }
  const auto ns = static_cast<uint64_t>(std::llround(takes_ns));
  const auto own_ns = static_cast<uint64_t>(std::llround(busy_ns));
  uint64_t free_ns = free_ns_.load(std::memory_order_relaxed);
  uint64_t begins_ns = 0;
  do {
    begins_ns = std::max(free_ns, now_ns);
  } while (!free_ns_.compare_exchange_weak(free_ns, begins_ns + own_ns, std::memory_order_relaxed));
  job.due_ns = begins_ns + ns;
  job.run_ns = ns;
  job.overdue_ns += begins_ns - now_ns;
  add(busy_ns_, own_ns);
}

bool Device::submit(Lane& lane, Job& job, uint64_t now_ns) noexcept {
  if (!is_up(now_ns)) return false;
  const uint64_t n_before = jobs_.load(std::memory_order_relaxed);
  const Faults& faults = options_.faults;
  if (faults.fail_after_jobs != 0 &&
      n_before % faults.fail_after_jobs == faults.fail_after_jobs - 1) {
    add(jobs_, 1);
    set_down_until(faults.back_after_ns == 0 ? exec::kNeverNs : now_ns + faults.back_after_ns);
    return false;
  }
  if (lane.ring.free_slots() == 0) return false;
  set_times(lane, job, now_ns);
  add(jobs_, 1);
  add(pkts_, job.n_pkts);
  if (has_fault(faults.lose_one_in)) return true;
  const LaneEntry entry{&job, job.number, job.runner};
  lane.ring.enqueue(&entry, 1);
  return true;
}

bool Device::run_next(Lane& lane, Context& ctx, uint64_t& free_ns) noexcept {
  LaneEntry entry{};
  bool is_there = false;
  lane.ring.peek(1, [&](const LaneEntry& next) {
    entry = next;
    is_there = true;
  });
  if (!is_there) return false;
  const bool is_wanted = entry.job->waits_as(entry.number);
  if (is_wanted) {
    Runner& runner = *entry.runner;
    if (!runner.is_turn_of(entry.number)) return false;
    if (entry.job->claim(entry.number)) {
      Job& job = *entry.job;
      for (uint32_t at = 0; at < job.n_pkts; at += exec::kMaxBatchPkts) {
        runner.run(ctx, &job.pkts[at], std::min(exec::kMaxBatchPkts, job.n_pkts - at));
      }
      const uint64_t ended_ns = TscClock::instance().now_ns();
      // The time until an idle thread noticed the job counts: it is part of a batch's cost.
      const uint64_t could_begin_ns = std::max(free_ns, job.submitted_ns);
      if (!options_.is_simulated) job.run_ns = ended_ns - std::min(ended_ns, could_begin_ns);
      free_ns = ended_ns;
      if (options_.is_simulated && options_.n_threads != 0 && ended_ns > job.due_ns)
        add(late_jobs_, 1);
      runner.end_turn_of(entry.number);
      job.end();
    }
  }
  lane.ring.dequeue(&entry, 1);
  return true;
}

void Device::run_here(Lane& lane, Context& ctx, uint64_t now_ns) noexcept {
  if (options_.n_threads != 0 || !is_up(now_ns)) return;
  uint64_t free_ns = TscClock::instance().now_ns();
  while (lane.kernel == nullptr ? run_next(lane, ctx, free_ns) : serve_kernel(lane, ctx, now_ns)) {
  }
}

// After a failure, workers take back all jobs that wait for the device.
bool Device::serve_kernel(Lane& lane, Context& ctx, uint64_t now_ns) noexcept {
  const uint64_t busy_before_ns = lane.kernel->busy_ns();
  const bool any = lane.kernel->serve(lane.ring, ctx, now_ns);
  add(busy_ns_, lane.kernel->busy_ns() - busy_before_ns);
  const DeviceFault& fault = lane.kernel->fault();
  if (fault.what == nullptr) return any;
  fault_code_.store(fault.code, std::memory_order_relaxed);
  fault_.store(fault.what, std::memory_order_release);
  set_down_until(exec::kNeverNs);
  return false;
}

bool Device::serve(uint32_t thread, Context& ctx) noexcept {
  bool any = false;
  for (auto& slot : lanes_) {
    Lane* const lane = slot.load(std::memory_order_acquire);
    if (lane == nullptr || lane->thread_index != thread) continue;
    ctx.now_ns = TscClock::instance().now_ns();
    if (!is_up(ctx.now_ns)) continue;
    if (lane->kernel != nullptr) {
      any = serve_kernel(*lane, ctx, ctx.now_ns) || any;
      continue;
    }
    if (!run_next(*lane, ctx, loops_[thread].free_ns)) continue;
    any = true;
    if (!options_.is_simulated) add(busy_ns_, TscClock::instance().now_ns() - ctx.now_ns);
  }
  return any;
}

void Device::thread_main(uint32_t thread) {
  const auto ctx = std::make_unique<Context>();
  ctx->batch_limit_pkts = exec::kMaxBatchPkts;
  if (quiescence_ != nullptr) quiescence_->set_online(first_slot_ + thread, true);
  uint32_t n_idle = 0;
  while (!must_stop_.load(std::memory_order_relaxed)) {
    n_idle = serve(thread, *ctx) ? 0 : n_idle + 1;
    loops_[thread].n.store(loops_[thread].n.load(std::memory_order_relaxed) + 1,
                           std::memory_order_release);
    if (quiescence_ != nullptr) quiescence_->pass(first_slot_ + thread);
    if (n_idle > kSpins + kYields) {
      std::this_thread::sleep_for(kNap);
    } else if (n_idle > kSpins) {
      std::this_thread::yield();
    } else {
      __builtin_ia32_pause();
    }
  }
  if (quiescence_ != nullptr) quiescence_->set_online(first_slot_ + thread, false);
}

Value Device::show(uint64_t now_ns) const {
  const double elapsed_ns =
      std::max(1.0, static_cast<double>(now_ns) - static_cast<double>(began_ns_));
  const double busy_ns = static_cast<double>(busy_ns_.load(std::memory_order_relaxed));
  const double share = std::min(1.0, busy_ns / elapsed_ns / std::max(1U, options_.n_threads));
  const char* const fault = fault_.load(std::memory_order_acquire);
  const int32_t code = fault_code_.load(std::memory_order_relaxed);
  std::string told = fault == nullptr ? "" : fault;
  if (code != 0)
    told += std::string(options_.cuda ? ": CUDA" : ": OpenCL") + " error " + std::to_string(code);
  Dict shown{{"name", options_.name},
             {"kind", options_.kind},
             {"is_up", is_up(now_ns)},
             {"fault", told},
             {"runs_on", own_memory_ == nullptr ? "" : own_memory_->name()},
             {"mapped_bytes", own_memory_ == nullptr ? 0 : own_memory_->lent_bytes()},
             {"threads", options_.n_threads},
             {"late_jobs", late_jobs_.load(std::memory_order_relaxed)},
             {"jobs", jobs_.load(std::memory_order_relaxed)},
             {"pkts", pkts_.load(std::memory_order_relaxed)},
             {"busy_share", share},
             {"modelled_w", options_.idle_w + (options_.active_w - options_.idle_w) * share}};
  if (const std::optional<double> measured_w = watts()) shown["measured_w"] = *measured_w;
  return shown;
}

}  // namespace batchplane::offload
