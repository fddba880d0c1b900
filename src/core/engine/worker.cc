// SPDX-License-Identifier: BSD-3-Clause
#include "core/engine/worker.h"

#include <algorithm>

#include "base/error.h"
#include "base/patience.h"
#include "base/pin_thread.h"
#include "core/engine/thread.h"

namespace batchplane {
namespace {
// Shorter gaps cannot be told from cache misses and timer ticks.
constexpr uint64_t kMinGapNs = 20'000;
// Packets that queues send around in a circle would delay a stop for ever; they count as held.
constexpr uint32_t kMaxDrainRounds = 100'000;
}  // namespace

// Readings in a row: the clock may have steps longer than one takes.
uint32_t measure_clock_cost_cycles() {
  constexpr uint64_t kReadings = 64;
  uint64_t least = ~0ULL;
  for (int i = 0; i < 100; ++i) {
    const uint64_t before = TscClock::cycles();
    uint64_t after = before;
    for (uint64_t k = 0; k < kReadings; ++k) after = TscClock::cycles();
    least = std::min(least, after - before);
  }
  return static_cast<uint32_t>(least / kReadings);
}

Worker::Worker(Options options, PacketPool* pool, Quiescence* quiescence)
    : options_(std::move(options)),
      quiescence_(quiescence),
      ctx_(std::make_unique<Context>()),
      sample_{options_.sample_one_run_in, options_.sample_one_run_in} {
  ctx_->batch_limit_pkts = options_.batch_limit_pkts;
  ctx_->pool = pool;
  ctx_->worker_index = options_.index;
  ctx_->clock_cost_cycles = measure_clock_cost_cycles();
}

Worker::~Worker() { stop(); }

void Worker::set_tasks(std::vector<Task*> tasks, exec::FlowMeter* meter) {
  ctx_->meter = meter;
  tasks_ = std::move(tasks);
  for (Task* task : tasks_) task->executor->set_shares_worker(tasks_.size() > 1);
}

Worker::Hold::Hold(Worker& worker) : worker_(worker) {
  if (!worker.options_.is_shared || !worker.is_running_) return;
  worker.take();
}

void Worker::take() {
  Patience patience;
  while (!try_take()) patience.wait();
}

Worker::Hold::~Hold() {
  if (worker_.options_.is_shared && worker_.is_running_) worker_.release();
}

void Worker::start() {
  if (is_running_) return;
  if (options_.is_shared) {
    if (quiescence_ != nullptr) quiescence_->set_online(options_.index, true);
    is_running_ = true;
    release();
    return;
  }
  must_stop_.store(false, std::memory_order_relaxed);
  std::atomic<int> state{0};
  thread_ = std::thread([this, &state] {
    if (options_.core >= 0 && !pin_this_thread(options_.core)) {
      state.store(2, std::memory_order_release);
      return;
    }
    const PacketThread registered;
    if (quiescence_ != nullptr) quiescence_->set_online(options_.index, true);
    state.store(1, std::memory_order_release);
    thread_main();
    if (quiescence_ != nullptr) quiescence_->set_online(options_.index, false);
  });
  Patience patience;
  while (state.load(std::memory_order_acquire) == 0) patience.wait();
  if (state.load(std::memory_order_acquire) == 2) {
    thread_.join();
    throw ConfigError("core " + std::to_string(options_.core) + " cannot be had",
                      "workers." + options_.name, "choose one that `taskset -p $$` lists");
  }
  is_running_ = true;
}

void Worker::stop() {
  if (!is_running_) return;
  if (options_.is_shared) {
    take();
    if (quiescence_ != nullptr) quiescence_->set_online(options_.index, false);
    is_running_ = false;
    return;
  }
  must_stop_.store(true, std::memory_order_release);
  ring_bell();
  thread_.join();
  is_running_ = false;
}

void Worker::post(Ticket& ticket) {
  if (!is_running_) {
    ticket.fn();
    ticket.is_done.store(true, std::memory_order_release);
    return;
  }
  Ticket* expected = nullptr;
  Patience patience;
  while (!pending_.compare_exchange_weak(expected, &ticket, std::memory_order_acq_rel)) {
    expected = nullptr;
    patience.wait();
  }
  ring_bell();
}

void Worker::ring_bell() {
  bell_.fetch_add(1, std::memory_order_release);
  bell_.notify_one();
}

void Worker::execute(const std::function<void()>& fn) {
  if (options_.is_shared) {
    const Hold hold(*this);
    fn();
    return;
  }
  Ticket ticket{fn};
  post(ticket);
  Patience patience;
  while (!ticket.is_done.load(std::memory_order_acquire)) patience.wait();
}

void Worker::obey() {
  Ticket* ticket = pending_.load(std::memory_order_acquire);
  const uint64_t begin_ns = clock_.now_ns();
  ticket->fn();
  control_in_loop_ns_ = clock_.now_ns() - begin_ns;
  stats_.control_ns += control_in_loop_ns_;
  pending_.store(nullptr, std::memory_order_relaxed);
  ticket->is_done.store(true, std::memory_order_release);
}

uint64_t Worker::work_ns() const {
  uint64_t sum = 0;
  for (const Task* task : tasks_) sum += task->executor->work_so_far_ns();
  return sum;
}

uint32_t Worker::loop_once() {
  uint32_t polled = 0;
  // The loop that ends now ends at the clock reading with which the next one begins, so that its time is
  // compared with its own work, not with that of two loops.
  const uint64_t work = work_ns();
  const uint64_t begin_ns = last_loop_ns_;
  for (Task* task : tasks_) {
    ctx_->task_index = task->index;
    uint64_t began_ns = 0;
    polled += exec::loop_task(*task, *ctx_, options_.is_idle_hold, sample_, began_ns);
    // Not the present reading: the clock may have been read again within the run.
    if (task == tasks_.front()) last_loop_ns_ = began_ns;
  }
  ++stats_.loops;
  uint64_t elapsed_ns = begin_ns == 0 ? 0 : last_loop_ns_ - begin_ns;
  elapsed_ns -= std::min(elapsed_ns, control_in_loop_ns_);
  control_in_loop_ns_ = 0;
  uint64_t gap_ns = 0;
  if (elapsed_ns > kMinGapNs) [[unlikely]]
    gap_ns = note_gap(elapsed_ns, work - last_work_ns_ + hosted_ns_);
  hosted_ns_ = 0;
  // A loop that found no input may still have fired buffers: idle, or past their age limits.
  if (previous_polled_ != 0 || work != last_work_ns_) {
    stats_.busy_ns += elapsed_ns;
    stats_.busy_gap_ns += gap_ns;
    // Time that the machine took away is not part of the turnaround, which triggers could change.
    loop_times_.note(elapsed_ns - gap_ns);
  } else {
    stats_.idle_ns += elapsed_ns;
    ++idle_loops_;
  }
  last_work_ns_ = work;
  previous_polled_ = polled;
  if (quiescence_ != nullptr) quiescence_->pass(options_.index);
  if (pending_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    obey();
  return polled;
}

// Time that the cost law explains (doubled, since it is an estimate) is not a gap.
uint64_t Worker::note_gap(uint64_t elapsed_ns, uint64_t worked_ns) {
  const uint64_t explained_ns = 2 * worked_ns;
  if (elapsed_ns <= explained_ns + kMinGapNs) return 0;
  const uint64_t length_ns = elapsed_ns - explained_ns;
  stats_.recent_gaps[stats_.gaps % stats_.recent_gaps.size()] = {last_loop_ns_, length_ns};
  ++stats_.gaps;
  stats_.gap_ns += length_ns;
  stats_.gap_max_ns = std::max(stats_.gap_max_ns, length_ns);
  return length_ns;
}

uint32_t Worker::run_hosted() {
  uint32_t polled = 0;
  for (Worker* shared : hosted_) {
    if (!shared->try_take()) continue;
    const uint64_t begin_ns = clock_.now_ns();
    polled += shared->loop_once();
    shared->release();
    hosted_ns_ += clock_.now_ns() - begin_ns;
  }
  return polled;
}

// A sleeping worker is not waited for at quiescent points.
void Worker::rest() {
  const uint32_t seen = bell_.load(std::memory_order_acquire);
  if (pending_.load(std::memory_order_acquire) != nullptr) return obey();
  if (must_stop_.load(std::memory_order_acquire)) return;
  if (quiescence_ != nullptr) quiescence_->set_online(options_.index, false);
  bell_.wait(seen, std::memory_order_acquire);
  if (quiescence_ != nullptr) quiescence_->set_online(options_.index, true);
  last_loop_ns_ = 0;  // the next loop has no predecessor
}

void Worker::thread_main() {
  last_loop_ns_ = 0;
  while (!must_stop_.load(std::memory_order_acquire)) {
    if (tasks_.empty() && hosted_.empty()) {
      rest();
    } else if (loop_once() + run_hosted() == 0) {
      _mm_pause();
    }
  }
  // A command that arrived together with the stop must not wait for ever.
  if (pending_.load(std::memory_order_acquire) != nullptr) obey();
  ctx_->flush_free();
}

bool Worker::drain(uint32_t max_loops) {
  const PacketThread registered;
  // The last packets need not be in time, and the loops are counted.
  for (Task* task : tasks_) task->poll_pkts = options_.batch_limit_pkts;
  bool was_any = false;
  for (uint32_t i = 0; i < max_loops && loop_once() != 0; ++i) was_any = true;
  bool any = true;
  for (uint32_t round = 0; any && round < kMaxDrainRounds; ++round) {
    any = false;
    for (Task* task : tasks_) {
      ctx_->task_index = task->index;
      any |= task->flush_held(*ctx_);
      any |= task->poll_queues(*ctx_);
    }
    was_any |= any;
  }
  return was_any;
}

}  // namespace batchplane
