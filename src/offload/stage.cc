// SPDX-License-Identifier: BSD-3-Clause
// stage.cc - the data path of a stage: collects packets, submits jobs, hands out results.
#include "offload/stage.h"

#include <algorithm>

#include "base/clock.h"
#include "base/patience.h"

namespace batchplane {

const DropReason reason::kRefused{"refused_by_placement",
                                  "no device has time for all that comes to this module",
                                  "add a device or a core, allow more watts, or a looser SLO"};

namespace offload {
namespace {

// Most packets taken from the rings in one poll: the worker checks age limits only between polls.
constexpr uint32_t kGatherPkts = 1024;

uint64_t bytes_of(const Job& job) {
  uint64_t n_bytes = 0;
  for (uint32_t i = 0; i < job.n_pkts; ++i) n_bytes += job.pkts[i]->len_bytes();
  return n_bytes;
}

}  // namespace

// Batches may be small, so one poll sends and hands out many, until there are no packets or no room.
uint32_t Stage::poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
  uint32_t given = 0;
  for (;;) {
    const bool has_come = gather(ctx.batch_limit_pkts);
    const uint8_t cause = cause_to_submit(ctx.now_ns, has_come);
    if (cause != exec::kNoCause) submit(ctx.now_ns, cause);
    const uint32_t before = given;
    while (given < max && !under_way_.empty() && is_ready(under_way_.front(), ctx)) {
      given += give_out(ctx, &pkts[given], max - given);
    }
    if (given == before || given == max) return given;
  }
}

uint32_t Stage::give_out(Context& ctx, Packet** pkts, uint32_t max) noexcept {
  Job& job = under_way_.front();
  const uint32_t n = std::min({max, job.n_pkts - job.n_given, exec::kMaxBatchPkts});
  if (job.is_inline) run_chunk(job, ctx, n);
  std::copy_n(&job.pkts[job.n_given], n, pkts);
  job.n_given += n;
  add_inside(-static_cast<int64_t>(n));
  const uint32_t next = std::min(job.n_pkts - job.n_given, max);
  for (uint32_t i = 0; i < next; ++i) prefetch_whole(job.pkts[job.n_given + i]);
  if (job.n_given == job.n_pkts) finish(job, ctx.now_ns);
  return n;
}

// Finished packets need not wait for the next batch; at most one engine batch of them.
bool Stage::gather(uint32_t engine_batch_pkts) noexcept {
  if (forming_ == nullptr) next_forming();
  if (forming_ == nullptr) return false;
  if (share_[forming_place_].load(std::memory_order_relaxed) <= 0) forming_place_ = next_place();
  const uint32_t most = std::max(wanted_pkts(), std::min(engine_batch_pkts, max_batch_pkts_));
  uint32_t taken = 0;
  while (forming_->n_pkts < most && taken < kGatherPkts) {
    Packet** const to = &forming_->pkts[forming_->n_pkts];
    const uint32_t n = take(to, std::min(most - forming_->n_pkts, exec::kMaxBatchPkts));
    if (n == 0) break;
    // Packets of one ring are in order.
    forming_since_ns_ = std::min(forming_since_ns_, task_entry_ns(**to));
    forming_->n_pkts += n;
    taken += n;
  }
  add_inside(taken);
  return taken != 0;
}

uint8_t Stage::cause_to_submit(uint64_t now_ns, bool has_come) noexcept {
  const auto as = [](exec::Cause cause) { return static_cast<uint8_t>(cause); };
  if (forming_ == nullptr || forming_->n_pkts == 0) return exec::kNoCause;
  if (under_way_.size() >= depth_ && !is_draining_) return exec::kNoCause;
  if (forming_->n_pkts >= wanted_pkts()) return as(exec::Cause::kFull);
  if (is_draining_) return as(exec::Cause::kChange);
  if (now_ns - std::min(now_ns, forming_since_ns_) >= age_limit_ns_.load(std::memory_order_relaxed))
    return as(exec::Cause::kAge);
  // Nothing is in flight and nothing more has arrived: waiting would gain nothing.
  if (!is_idle_hold_ && !has_come && under_way_.empty()) return as(exec::Cause::kIdle);
  return exec::kNoCause;
}

void Stage::submit(uint64_t now_ns, uint8_t cause) noexcept {
  Job& job = *forming_;
  forming_ = nullptr;
  forming_since_ns_ = exec::kNeverNs;
  job.begin(next_number_++);
  job.is_inline = false;
  job.n_given = 0;
  job.submitted_ns = now_ns;
  job.place = forming_place_;
  job.run_ns = 0;
  const double share = std::max(1e-3, share_[job.place].load(std::memory_order_relaxed));
  pass_[job.place] = std::max(pass_[job.place], virtual_pass_) + job.n_pkts / share;
  StageCounts::add(counts_.bytes, uint64_t{job.n_pkts} * job.pkts[0]->len_bytes());
  StageCounts::add(counts_.jobs[cause], 1);
  StageCounts::add(counts_.pkts, job.n_pkts);
  Place& place = places_[job.place];
  if (place.device != nullptr && place.device->counts_bytes()) job.n_bytes = bytes_of(job);
  const bool is_given = place.device != nullptr && !is_draining_ &&
                        now_ns >= trust_[job.place].avoided_until_ns &&
                        place.device->submit(*place.lane, job, now_ns);
  if (!is_given) job.is_inline = job.claim(job.number);
  under_way_.push(&job);
}

// Whether packets of the oldest job can be handed out now, wherever it ran.
bool Stage::is_ready(Job& job, Context& ctx) noexcept {
  if (job.is_inline) return true;
  Place& place = places_[job.place];
  if (job.state() == Job::State::kWaiting) {
    if (ctx.now_ns >= job.due_ns) place.device->run_here(*place.lane, ctx, ctx.now_ns);
    const bool is_lost = ctx.now_ns >= job.overdue_ns;
    if ((is_lost || !place.device->is_up(ctx.now_ns)) && job.state() == Job::State::kWaiting &&
        take_back(job, ctx.now_ns)) {
      return true;
    }
  }
  if (is_draining_) settle(job);
  if (job.is_inline) return true;
  return job.state() == Job::State::kDone && (ctx.now_ns >= job.due_ns || is_draining_);
}

bool Stage::take_back(Job& job, uint64_t now_ns) noexcept {
  if (!job.claim(job.number)) return false;
  job.is_inline = true;
  StageCounts::add(counts_.taken_back_jobs, 1);
  Trust& trust = trust_[job.place];
  trust.next_pause_ns = std::clamp(2 * trust.next_pause_ns, kFirstPauseNs, kLongestPauseNs);
  trust.avoided_until_ns = now_ns + trust.next_pause_ns;
  return true;
}

// The thread that has claimed it runs or copies it within the time of a batch.
void Stage::settle(Job& job) noexcept {
  Patience patience;
  while (!job.is_inline && job.state() != Job::State::kDone) {
    job.is_inline = job.claim(job.number);
    if (!job.is_inline) patience.wait();
  }
}

void Stage::run_chunk(Job& job, Context& ctx, uint32_t n_pkts) noexcept {
  const uint64_t began_ns = TscClock::instance().now_ns();
  runner_->run(ctx, &job.pkts[job.n_given], n_pkts);
  job.run_ns += TscClock::instance().now_ns() - began_ns;
  StageCounts::add(counts_.inline_pkts, n_pkts);
  if (job.n_given + n_pkts == job.n_pkts) runner_->end_turn_of(job.number);
}

void Stage::finish(Job& job, uint64_t now_ns) noexcept {
  if (!job.is_inline) trust_[job.place].next_pause_ns = 0;
  StageCounts::add(counts_.job_ns, now_ns - std::min(now_ns, job.submitted_ns));
  // Jobs that were taken back say nothing about the device's speed.
  const bool is_of_place = job.is_inline == (places_[job.place].device == nullptr);
  if (is_of_place && !job.is_foreign) {
    StageCounts::Done& done = counts_.done[job.place];
    StageCounts::add(done.jobs, 1);
    StageCounts::add(done.pkts, job.n_pkts);
    StageCounts::add(done.run_ns, job.run_ns);
  }
  job.end();
  job.n_pkts = 0;
  under_way_.pop();
  if (!job.is_foreign) idle_.push_back(&job);
}

void Stage::next_forming() noexcept {
  if (idle_.empty()) return;
  forming_ = idle_.back();
  idle_.pop_back();
  forming_place_ = next_place();
}

uint32_t Stage::next_place() noexcept {
  uint32_t next = 0;
  double least = -1;
  for (uint32_t p = 0; p < places_.size(); ++p) {
    if (share_[p].load(std::memory_order_relaxed) <= 0) continue;
    const double pass = std::max(pass_[p], virtual_pass_);
    if (least >= 0 && pass >= least) continue;
    least = pass;
    next = p;
  }
  virtual_pass_ = std::max(virtual_pass_, least);
  return next;
}

// Drops one packet in so many, however they are batched.
void Stage::consume(Context& ctx, Batch& batch) noexcept {
  const double refused = refused_.load(std::memory_order_relaxed);
  if (refused <= 0) [[likely]]
    return put(ctx, batch);
  double& due = refused_due_[ctx.worker_index];
  Packet* kept[exec::kMaxBatchPkts];
  uint32_t n_kept = 0;
  for (uint32_t i = 0; i < batch.size_pkts; ++i) {
    due += refused;
    if (due < 1) {
      kept[n_kept++] = batch[i];
      continue;
    }
    due -= 1;
    StageCounts::add(counts_.refused_pkts, 1);
    ctx.drop(batch, i, reason::kRefused);
  }
  if (n_kept == 0) return;
  Batch rest{kept, n_kept, exec::kNeverNs};
  put(ctx, rest);
}

// Both sides are stopped between two runs. Jobs that no thread has begun will be run by this worker;
// running ones are waited for, since the module's state advances up to their last packet.
void Stage::adopt(Module& old_module) noexcept {
  auto& old = static_cast<Stage&>(old_module);
  FeederQueue::adopt(old_module);
  old.is_draining_ = true;  // no device gets any more jobs
  if (old.forming_ != nullptr && old.forming_->n_pkts != 0)
    old.submit(0, static_cast<uint8_t>(exec::Cause::kChange));
  next_number_ = old.next_number_;
  uint64_t first_turn = next_number_;
  while (!old.under_way_.empty()) {
    Job* const job = old.under_way_.pop();
    settle(*job);
    if (job->is_inline) first_turn = std::min(first_turn, job->number);
    job->runner = runner_.get();
    job->place = 0;
    job->is_foreign = true;
    under_way_.push(job);
    foreign_jobs_.push_back(old.release(job));
  }
  runner_->begin_with(first_turn);
  inside_pkts_.store(old.inside_pkts_.exchange(0), std::memory_order_relaxed);
  runner_->module().adopt(old.runner_->module());
}

std::unique_ptr<Job> Stage::release(const Job* job) noexcept {
  for (auto* const jobs : {&jobs_, &foreign_jobs_}) {
    const auto owner = std::ranges::find(*jobs, job, &std::unique_ptr<Job>::get);
    if (owner != jobs->end()) return std::move(*owner);
  }
  return nullptr;
}

void Stage::give_up_held(const std::function<void(Packet*)>& take_pkt) {
  FeederQueue::give_up_held(take_pkt);
  while (!under_way_.empty()) {
    Job& job = *under_way_.pop();
    settle(job);
    for (uint32_t i = job.n_given; i < job.n_pkts; ++i) take_pkt(job.pkts[i]);
    job.n_pkts = 0;
  }
  for (uint32_t i = 0; forming_ != nullptr && i < forming_->n_pkts; ++i)
    take_pkt(forming_->pkts[i]);
  if (forming_ != nullptr) forming_->n_pkts = 0;
  inside_pkts_.store(0, std::memory_order_relaxed);
}

}  // namespace offload
}  // namespace batchplane
