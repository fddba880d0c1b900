// SPDX-License-Identifier: BSD-3-Clause
// stage_setup.cc - the control side of a stage: set-up, live edits, statistics.
#include <algorithm>

#include "base/clock.h"
#include "base/nearest_word.h"
#include "exec/control.h"
#include "offload/stage.h"

namespace batchplane::offload {
namespace {

constexpr uint32_t kDefaultQueuePkts = 4096;

std::vector<ParamSpec> own_params() {
  return {{.name = "on",
           .type = ParamType::kList,
           .help = "where batches may run, `inline` among them; they begin on the first",
           .min = 1},
          {.name = "batch_pkts",
           .unit = "pkts",
           .default_value = Stage::kDefaultBatchPkts,
           .help = "packets of a batch, live",
           .min = 1,
           .max = kMaxJobPkts},
          {.name = "max_batch_pkts",
           .unit = "pkts",
           .default_value = 0,
           .help = "as many as batch_pkts may be raised to; 0: what it is now",
           .min = 0,
           .max = kMaxJobPkts},
          {.name = "age_limit_ns",
           .unit = "ns",
           .default_value = 100'000,
           .help = "a batch is sent when its oldest packet has waited this long, live",
           .min = 0,
           .max = 1e15},
          {.name = "depth",
           .default_value = 4,
           .help = "batches under way at once",
           .min = 1,
           .max = kMaxDepth},
          {.name = "idle",
           .type = ParamType::kString,
           .default_value = "release",
           .help = "send what there is when nothing is under way and nothing comes, or hold it",
           .choices = {"release", "hold"}}};
}

std::vector<ParamSpec> device_params() {
  std::vector<ParamSpec> params = own_params();
  for (ParamSpec& param : queue_params()) {
    if (param.name == "size_pkts") param.default_value = kDefaultQueuePkts;
    params.push_back(std::move(param));
  }
  return params;
}

Args device_args(const Args& args) {
  std::vector<ConfigError> errors;
  Args made(device_params(), args.dict("device"), args.where() + ".device", errors);
  if (!errors.empty()) {
    throw ConfigError(errors.front().what(), errors.front().where(), errors.front().fix());
  }
  made.set_env(&args.env());
  made.set_name(args.name());
  return made;
}

std::unique_ptr<Runner> make_runner(const Args& args, const ModuleInfo& of) {
  Dict given = args.all_given();
  given.erase("device");
  Args inner(of.params, given, args.where());
  inner.set_env(&args.env());
  inner.set_name(args.name());
  auto runner = std::make_unique<Runner>(of, of.make(inner));
  runner->module().set_name(args.name());
  return runner;
}

}  // namespace

std::vector<ParamSpec> stage_params() {
  return {{.name = "device",
           .type = ParamType::kDict,
           .help = "where it runs: {on: [gpu, inline], batch_pkts: 1024, age_limit: 100us}"}};
}

Stage::Stage(const Args& args, const ModuleInfo& of) : Stage(args, device_args(args), of) {}

Stage::Stage(const Args& args, const Args& own, const ModuleInfo& of)
    : FeederQueue(own),
      runner_(make_runner(args, of)),
      max_batch_pkts_(std::max(own.u32("max_batch_pkts"), own.u32("batch_pkts"))),
      depth_(own.u32("depth")),
      is_idle_hold_(own.string("idle") == "hold"),
      age_limit_ns_(own.u64("age_limit_ns")),
      refused_due_(args.env().n_workers, 0) {
  for (const Value& name : own.list("on")) {
    if (!name.is_string()) throw ConfigError("expected names of devices", own.where() + ".on");
    add_place(name.as_string(), own);
  }
  if (places_.size() > kMaxPlaces) {
    throw ConfigError("more than " + std::to_string(kMaxPlaces) + " devices", own.where() + ".on");
  }
  share_[0].store(1);
  for (auto& batch : batch_pkts_) batch.store(own.u32("batch_pkts"));
  trust_.resize(places_.size());
  idle_.reserve(depth_ + 1);
  foreign_jobs_.reserve(2 * (kMaxDepth + 1));
  for (uint32_t i = 0; i <= depth_; ++i) {
    jobs_.push_back(std::make_unique<Job>(max_batch_pkts_, runner_.get()));
    idle_.push_back(jobs_.back().get());
  }
}

Stage::~Stage() {
  Stage::give_up_held([](Packet* pkt) { PacketPool::free_bulk(&pkt, 1); });
  for (const Place& place : places_) {
    if (place.device != nullptr) place.device->detach(place.lane);
  }
}

void Stage::add_place(const std::string& name, const Args& args) {
  Place place{.name = name};
  if (name != kInline) {
    const auto devices = args.env().shared<Devices>(kDevices, [] { return new Devices; });
    const auto known = devices->by_name.find(name);
    if (known == devices->by_name.end() && devices->refused.contains(name)) {
      places_.push_back(std::move(place));  // so that a mistake is reported once
      return;
    }
    if (known == devices->by_name.end()) {
      std::vector<std::string> names{kInline};
      for (const auto& [device, made] : devices->by_name) names.push_back(device);
      const std::string near = nearest_word(name, names);
      throw ConfigError("there is no device '" + name + "'", args.where() + ".on",
                        near.empty() ? "add it under devices:" : "did you mean '" + near + "'?");
    }
    place.device = known->second;
    place.lane = place.device->attach(*runner_, max_batch_pkts_);
  }
  places_.push_back(std::move(place));
}

uint32_t Stage::place_named(const std::string& wanted) const {
  std::vector<std::string> names;
  for (uint32_t p = 0; p < places_.size(); ++p) {
    if (places_[p].name == wanted) return p;
    names.push_back(places_[p].name);
  }
  const std::string near = nearest_word(wanted, names);
  throw ConfigError(
      "'" + wanted + "' is none of its devices", "on",
      near.empty() ? "add it to `on` in the pipeline" : "did you mean '" + near + "'?");
}

const BatchLaw* Stage::law_on(const Device& device) const {
  const auto place = std::ranges::find(
      places_, &device, [](const Place& one) -> const Device* { return one.device.get(); });
  if (place == places_.end() || !place->lane->law) return nullptr;
  return &*place->lane->law;
}

void Stage::inherit(Module& old_module) {
  runner_->module().inherit(static_cast<Stage&>(old_module).runner_->module());
  renew_tables();
}

void Stage::renew_tables() {
  for (const Place& place : places_) {
    if (place.lane != nullptr && place.lane->kernel != nullptr) place.lane->kernel->renew_table();
  }
}

uint64_t Stage::held_pkts() const {
  return FeederQueue::held_pkts() + inside_pkts_.load(std::memory_order_relaxed);
}
uint64_t Stage::taken_pkts() const {
  return FeederQueue::taken_pkts() - inside_pkts_.load(std::memory_order_relaxed);
}
uint32_t Stage::max_held_pkts() const {
  return FeederQueue::max_held_pkts() + (depth_ + 1) * max_batch_pkts_;
}

void Stage::place(const Placing& placing) {
  for (uint32_t p = 0; p < places_.size(); ++p) {
    const uint32_t batch = std::clamp(placing.batch_pkts[p], 1U, max_batch_pkts_);
    batch_pkts_[p].store(batch, std::memory_order_relaxed);
    share_[p].store(placing.share[p], std::memory_order_relaxed);
  }
  age_limit_ns_.store(placing.age_limit_ns, std::memory_order_relaxed);
  refused_.store(placing.refused, std::memory_order_relaxed);
}

Placing Stage::placing() const {
  Placing placing;
  for (uint32_t p = 0; p < places_.size(); ++p) {
    placing.share[p] = share_[p].load(std::memory_order_relaxed);
    placing.batch_pkts[p] = batch_pkts_[p].load(std::memory_order_relaxed);
  }
  placing.age_limit_ns = age_limit_ns_.load(std::memory_order_relaxed);
  placing.refused = refused_.load(std::memory_order_relaxed);
  return placing;
}

// The place that gets most of the packets.
uint32_t Stage::main_place() const {
  const Placing now = placing();
  return static_cast<uint32_t>(std::ranges::max_element(now.share) - now.share.begin());
}

exec::StagePeriod Stage::stage_period() const {
  const auto now = [](const std::atomic<uint64_t>& n) { return n.load(std::memory_order_relaxed); };
  exec::StagePeriod period;
  for (const std::atomic<uint64_t>& jobs : counts_.jobs) period.totals.sent_jobs += now(jobs);
  period.totals.aged_jobs = now(counts_.jobs[static_cast<size_t>(exec::Cause::kAge)]);
  period.totals.sent_pkts = now(counts_.pkts);
  period.totals.bytes = now(counts_.bytes);
  period.totals.job_ns = now(counts_.job_ns);
  for (const StageCounts::Done& done : counts_.done) {
    period.totals.jobs += now(done.jobs);
    period.totals.pkts += now(done.pkts);
    period.totals.run_ns += now(done.run_ns);
  }
  const uint32_t main = main_place();
  period.batch_pkts = batch_pkts_[main].load(std::memory_order_relaxed);
  period.age_limit_ns = age_limit_ns_.load(std::memory_order_relaxed);
  period.is_idle_hold = is_idle_hold_;
  const Device* const device = places_[main].device.get();
  if (device == nullptr) return period;
  period.device = device;
  period.device_threads = std::max(1U, device->options().n_threads);
  if (const BatchLaw* const law = law_on(*device)) period.law = *law;
  return period;
}

void Stage::set_stage(const exec::StageChange& change) {
  Placing next = placing();
  next.batch_pkts.fill(change.batch_pkts);
  next.age_limit_ns = change.age_limit_ns;
  place(next);
}

// All or nothing: errors are found before anything is set.
void Stage::set(const Value& args) {
  const Dict none;
  const Dict& given = args.is_dict() ? args.as_dict() : none;
  Placing next = placing();
  const auto whole = [](const Value& value, const std::string& key, uint64_t least, uint64_t most) {
    if (value.is_int() && value.as_int() >= static_cast<int64_t>(least) &&
        value.as_int() <= static_cast<int64_t>(most)) {
      return static_cast<uint64_t>(value.as_int());
    }
    throw ConfigError("out of range", key, std::to_string(least) + " to " + std::to_string(most));
  };
  for (const auto& [key, value] : given) {
    if (key == "on" && value.is_string()) {
      const uint32_t chosen = place_named(value.as_string());
      next.share.fill(0);
      next.share[chosen] = 1;
    } else if (key == "batch_pkts") {
      next.batch_pkts.fill(static_cast<uint32_t>(whole(value, key, 1, max_batch_pkts_)));
    } else if (key == "age_limit_ns") {
      next.age_limit_ns = whole(value, key, 0, 1'000'000'000'000'000);
    } else {
      throw ConfigError("'" + key + "' is not known here", key, "on, batch_pkts, age_limit_ns");
    }
  }
  if (given.empty()) {
    throw ConfigError("nothing is given", "device", "on, batch_pkts, age_limit_ns");
  }
  place(next);
}

Value Stage::command(const std::string& verb, const Value& args) {
  if (verb != "device") {
    Value answer = runner_->module().command(verb, args);
    renew_tables();
    return answer;
  }
  set(args);
  return show();
}

Value Stage::show() const {
  Dict shown = runner_->module().show().as_dict();
  const uint64_t now_ns = TscClock::instance().now_ns();
  List places;
  const Placing now = placing();
  for (uint32_t p = 0; p < places_.size(); ++p) {
    const Place& place = places_[p];
    Dict row =
        place.device == nullptr ? Dict{{"name", place.name}} : place.device->show(now_ns).as_dict();
    const StageCounts::Done& done = counts_.done[p];
    const auto jobs_done = static_cast<double>(done.jobs.load(std::memory_order_relaxed));
    row["share"] = now.share[p];
    row["batch_pkts"] = now.batch_pkts[p];
    row["done_pkts"] = done.pkts.load(std::memory_order_relaxed);
    row["mean_run_ns"] =
        static_cast<double>(done.run_ns.load(std::memory_order_relaxed)) / std::max(1.0, jobs_done);
    places.emplace_back(std::move(row));
  }
  Dict jobs;
  uint64_t n_jobs = 0;
  for (uint32_t c = 0; c < exec::kCauses; ++c) {
    const uint64_t n = counts_.jobs[c].load(std::memory_order_relaxed);
    jobs[exec::kCauseNames[c]] = n;
    n_jobs += n;
  }
  const uint64_t pkts = counts_.pkts.load(std::memory_order_relaxed);
  const auto per_job = [n_jobs](uint64_t sum) {
    return n_jobs == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(n_jobs);
  };
  shown["stage"] =
      Dict{{"on", places_[main_place()].name},
           {"batch_pkts", now.batch_pkts[main_place()]},
           {"age_limit_ns", now.age_limit_ns},
           {"refused_share", now.refused},
           {"depth", depth_},
           {"held_pkts", held_pkts()},
           {"lost_pkts", arrival_counts().lost_pkts},
           {"jobs", jobs},
           {"pkts", pkts},
           {"mean_job_pkts", per_job(pkts)},
           {"mean_job_ns", per_job(counts_.job_ns.load(std::memory_order_relaxed))},
           {"inline_pkts", counts_.inline_pkts.load(std::memory_order_relaxed)},
           {"taken_back_jobs", counts_.taken_back_jobs.load(std::memory_order_relaxed)},
           {"queue", FeederQueue::show()},
           {"devices", places}};
  return shown;
}

Dict Stage::saved_params() const {
  Dict saved = runner_->module().saved_params();
  const uint32_t main = main_place();
  List on{places_[main].name};
  for (uint32_t p = 0; p < places_.size(); ++p) {
    if (p != main) on.emplace_back(places_[p].name);
  }
  saved["device"] = Dict{{"on", on},
                         {"batch_pkts", placing().batch_pkts[main]},
                         {"max_batch_pkts", max_batch_pkts_},
                         {"age_limit_ns", placing().age_limit_ns},
                         {"depth", depth_},
                         {"idle", is_idle_hold_ ? "hold" : "release"},
                         {"size_pkts", ring_pkts()},
                         {"credit_pkts", credit_pkts()},
                         {"backpressure", wants_backpressure()}};
  return saved;
}

}  // namespace batchplane::offload
