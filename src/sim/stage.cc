// SPDX-License-Identifier: BSD-3-Clause
#include "sim/stage.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/queue.h"
#include "sim/spec_fields.h"

namespace batchplane::sim {
namespace {

// Most packets taken out of the rings at once, as in the engine: age limits wait meanwhile.
constexpr uint32_t kGatherPkts = 1024;

uint64_t now_of(const Context& ctx) { return ctx.clock.ticks >> kTicksPerNsLog2; }

}  // namespace

Stage::Stage(const StageSpec& spec, std::vector<Place> places, uint32_t engine_batch_pkts)
    : spec_(spec),
      places_(std::move(places)),
      engine_batch_pkts_(engine_batch_pkts),
      pass_(places_.size(), 0),
      done_(places_.size()) {
  for (const Place& place : places_) {
    threads_.push_back(place.device == nullptr ? 0 : place.device->attach());
  }
  for (size_t p = 0; p < places_.size(); ++p) placing_.share[p] = places_[p].spec.share;
  placing_.batch_pkts.fill(spec_.batch_pkts);
  placing_.age_limit_ns = spec_.age_limit_ns;
}

void Stage::place(const placement::Placing& placing) {
  placing_ = placing;
  for (uint32_t& batch_pkts : placing_.batch_pkts)
    batch_pkts = std::clamp(batch_pkts, 1U, spec_.max_batch_pkts);
}

void Stage::set(const Value& args) {
  const std::string where = "device";
  refuse_other_keys(args, {"on", "batch_pkts", "age_limit_ns"}, "key of a device", where);
  placement::Placing next = placing_;
  if (!args["on"].is_null()) {
    std::vector<std::string> names;
    for (const Place& place : places_) names.push_back(place.spec.device);
    const std::string& wanted = args["on"].as_string();
    const auto chosen = std::ranges::find(names, wanted);
    if (chosen == names.end()) refuse_name("device", wanted, names, where + ".on");
    const auto place = static_cast<size_t>(chosen - names.begin());
    if (!places_[place].spec.is_known) {
      throw ConfigError("nobody says what batches take on '" + wanted + "'", where + ".on",
                        "profile the device, or give it laws");
    }
    next.share.fill(0);
    next.share[place] = 1;
  }
  if (!args["batch_pkts"].is_null()) {
    next.batch_pkts.fill(
        at_least_one(args, "batch_pkts", spec_.batch_pkts, where, spec_.max_batch_pkts));
  }
  next.age_limit_ns = static_cast<uint64_t>(
      number(args, "age_limit_ns", static_cast<double>(next.age_limit_ns), where, kMostAgeNs));
  place(next);
}

// Drops one packet in so many, however they are batched.
bool Stage::refuses(uint32_t ring) {
  if (placing_.refused <= 0) return false;
  if (refused_due_.size() <= ring) refused_due_.resize(ring + 1, 0);
  double& due = refused_due_[ring];
  due += placing_.refused;
  if (due < 1) return false;
  due -= 1;
  ++refused_pkts_;
  return true;
}

placement::StageCounts Stage::counts() const {
  placement::StageCounts counts;
  counts.offered_pkts = given_pkts_ + refused_pkts_;
  counts.pkts = pkts_;
  counts.bytes = bytes_;
  std::ranges::copy(done_, counts.done.begin());
  return counts;
}

exec::StagePeriod Stage::period() const {
  const auto main =
      static_cast<size_t>(std::ranges::max_element(placing_.share) - placing_.share.begin());
  const Place& place = places_[main];
  exec::StagePeriod period{.batch_pkts = placing_.batch_pkts[main],
                           .age_limit_ns = placing_.age_limit_ns,
                           .is_idle_hold = spec_.is_idle_hold,
                           .device = place.device.get()};
  for (const uint64_t jobs : jobs_) period.totals.sent_jobs += jobs;
  period.totals.aged_jobs = jobs_[static_cast<size_t>(exec::Cause::kAge)];
  period.totals.sent_pkts = pkts_;
  period.totals.bytes = bytes_;
  period.totals.job_ns = job_ns_;
  for (const placement::StageCounts::Done& done : done_) {
    period.totals.jobs += done.jobs;
    period.totals.pkts += done.pkts;
    period.totals.run_ns += done.run_ns;
  }
  if (place.device == nullptr) return period;
  period.device_threads = place.device->n_threads();
  period.law = place.spec.law;
  return period;
}

uint32_t Stage::poll(Queue& queue, Context& ctx, Packet** pkts, uint32_t max) {
  uint32_t given = 0;
  for (;;) {
    const bool has_come = gather(queue, now_of(ctx));
    const uint8_t cause = cause_to_submit(now_of(ctx), has_come);
    if (cause != exec::kNoCause) submit(now_of(ctx), cause);
    const uint32_t before = given;
    while (given < max && !under_way_.empty() && under_way_.front().due_ns <= now_of(ctx)) {
      given += give_out(ctx, &pkts[given], max - given);
    }
    if (given == before || given == max) return given;
  }
}

bool Stage::gather(Queue& queue, uint64_t now_ns) {
  if (!std::exchange(has_forming_place_, true) || placing_.share[forming_place_] <= 0)
    forming_place_ = next_place();
  Packet* pkts[exec::kMaxBatchPkts];
  uint32_t taken = 0;
  while (forming_.size() < most_pkts() && taken < kGatherPkts) {
    const auto room = static_cast<uint32_t>(most_pkts() - forming_.size());
    uint32_t n = 0;
    if (!carried_.empty()) {
      pkts[n++] = carried_.front();
      carried_.pop_front();
    } else {
      n = queue.take(pkts, std::min(room, exec::kMaxBatchPkts), now_ns);
      inside_pkts_ += n;
    }
    if (n == 0) break;
    // A ring's packets are in order: the first is the oldest.
    forming_since_ns_ = std::min(forming_since_ns_, pkts[0]->task_entry_ns);
    forming_.insert(forming_.end(), pkts, pkts + n);
    taken += n;
  }
  return taken != 0;
}

uint8_t Stage::cause_to_submit(uint64_t now_ns, bool has_come) const {
  const auto as = [](exec::Cause cause) { return static_cast<uint8_t>(cause); };
  if (forming_.empty() || !has_room_under_way()) return exec::kNoCause;
  if (forming_.size() >= wanted_pkts()) return as(exec::Cause::kFull);
  if (is_draining_) return as(exec::Cause::kChange);
  if (now_ns - std::min(now_ns, forming_since_ns_) >= placing_.age_limit_ns)
    return as(exec::Cause::kAge);
  // Nothing is under way and nothing more has come: waiting would gain nothing.
  if (!spec_.is_idle_hold && !has_come && under_way_.empty()) return as(exec::Cause::kIdle);
  return exec::kNoCause;
}

// The same decisions as in poll(), as a time.
uint64_t Stage::next_ns(uint64_t ring_ns) const {
  uint64_t next_ns = under_way_.empty() ? exec::kNeverNs : under_way_.front().due_ns;
  if (forming_.size() < most_pkts()) next_ns = carried_.empty() ? std::min(next_ns, ring_ns) : 0;
  if (forming_.empty() || !has_room_under_way()) return next_ns;
  const bool is_due = forming_.size() >= wanted_pkts() || is_draining_ ||
                      (!spec_.is_idle_hold && under_way_.empty());
  return is_due ? 0 : std::min(next_ns, forming_since_ns_ + placing_.age_limit_ns);
}

void Stage::submit(uint64_t now_ns, uint8_t cause) {
  Job job{.pkts = std::exchange(forming_, {}), .place = forming_place_, .submitted_ns = now_ns};
  forming_since_ns_ = exec::kNeverNs;
  has_forming_place_ = false;
  const auto n_pkts = static_cast<uint32_t>(job.pkts.size());
  const Place& place = places_[job.place];
  pass_[job.place] = std::max(pass_[job.place], virtual_pass_) +
                     n_pkts / std::max(1e-3, placing_.share[job.place]);
  job.due_ns = now_ns;
  bytes_ += uint64_t{n_pkts} * job.pkts.front()->size_bytes;
  if (place.device != nullptr) {
    double n_bytes = 0;
    for (const Packet* pkt : job.pkts) n_bytes += pkt->size_bytes;
    const BatchLaw& law = place.spec.law;
    job.run_ns = static_cast<uint64_t>(std::llround(law.time_ns(n_pkts, n_bytes / n_pkts)));
    const auto busy_ns = static_cast<uint64_t>(std::llround(law.busy_ns(n_pkts, n_bytes / n_pkts)));
    job.due_ns = place.device->submit(threads_[job.place], n_pkts, job.run_ns, busy_ns, now_ns);
  }
  ++jobs_[cause];
  pkts_ += n_pkts;
  under_way_.push_back(std::move(job));
}

// A place that had no batches for a while starts level with the others.
uint32_t Stage::next_place() {
  uint32_t next = 0;
  double least = -1;
  for (uint32_t p = 0; p < places_.size(); ++p) {
    if (placing_.share[p] <= 0) continue;
    const double pass = std::max(pass_[p], virtual_pass_);
    if (least >= 0 && pass >= least) continue;
    least = pass;
    next = p;
  }
  virtual_pass_ = std::max(virtual_pass_, least);
  return next;
}

uint32_t Stage::give_out(Context& ctx, Packet** pkts, uint32_t max) {
  Job& job = under_way_.front();
  const auto left = static_cast<uint32_t>(job.pkts.size()) - job.n_given;
  const uint32_t n = std::min({max, left, engine_batch_pkts_});
  if (places_[job.place].device == nullptr) {
    const uint64_t began_ns = now_of(ctx);
    charge_run(ctx, inline_, n);
    job.run_ns += now_of(ctx) - began_ns;
    inline_pkts_ += n;
  }
  std::copy_n(&job.pkts[job.n_given], n, pkts);
  job.n_given += n;
  inside_pkts_ -= n;
  given_pkts_ += n;
  if (job.n_given == job.pkts.size()) finish(now_of(ctx));
  return n;
}

void Stage::finish(uint64_t now_ns) {
  const Job& job = under_way_.front();
  job_ns_ += now_ns - job.submitted_ns;
  placement::StageCounts::Done& done = done_[job.place];
  done.jobs += 1;
  done.pkts += job.pkts.size();
  done.run_ns += job.run_ns;
  under_way_.pop_front();
}

Dict Stage::show(uint64_t now_ns, uint64_t queue_held_pkts, uint64_t lost_pkts) const {
  List places;
  size_t main = 0;
  for (size_t p = 0; p < places_.size(); ++p) {
    const auto& [spec, device] = places_[p];
    if (placing_.share[p] > placing_.share[main]) main = p;
    Dict row = device == nullptr ? Dict{{"name", spec.device}} : device->show(now_ns);
    row["share"] = placing_.share[p];
    row["batch_pkts"] = placing_.batch_pkts[p];
    row["done_pkts"] = done_[p].pkts;
    row["mean_run_ns"] = static_cast<double>(done_[p].run_ns) /
                         static_cast<double>(std::max<uint64_t>(1, done_[p].jobs));
    places.emplace_back(std::move(row));
  }
  Dict jobs;
  uint64_t n_jobs = 0;
  for (uint32_t c = 0; c < exec::kCauses; ++c) {
    jobs[exec::kCauseNames[c]] = jobs_[c];
    n_jobs += jobs_[c];
  }
  const auto per_job = [n_jobs](uint64_t sum) {
    return static_cast<double>(sum) / static_cast<double>(std::max<uint64_t>(1, n_jobs));
  };
  return Dict{{"on", places_[main].spec.device},
              {"batch_pkts", placing_.batch_pkts[main]},
              {"age_limit_ns", placing_.age_limit_ns},
              {"refused_share", placing_.refused},
              {"depth", spec_.depth},
              {"held_pkts", queue_held_pkts + inside_pkts_},
              {"lost_pkts", lost_pkts},
              {"jobs", jobs},
              {"pkts", pkts_},
              {"mean_job_pkts", per_job(pkts_)},
              {"mean_job_ns", per_job(job_ns_)},
              {"inline_pkts", inline_pkts_},
              {"taken_back_jobs", 0},
              {"devices", places}};
}

}  // namespace batchplane::sim
