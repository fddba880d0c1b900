// SPDX-License-Identifier: BSD-3-Clause
// stage.h - a module on a device: takes packets like a queue, sends them through a device in batches of up
// to kMaxJobPkts, and hands them out in their order of arrival.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/batch_law.h"
#include "core/module/feeder_queue.h"
#include "offload/devices.h"
#include "placement/placing.h"

namespace batchplane::reason {
extern const DropReason kRefused;
}

namespace batchplane::offload {

using placement::kInline;
using placement::kMaxPlaces;
using placement::Placing;

[[nodiscard]] std::vector<ParamSpec> stage_params();

// Jobs in flight, oldest first. Owner: the stage's worker.
class JobQueue {
 public:
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] uint32_t size() const { return tail_ - head_; }
  [[nodiscard]] Job& front() { return *jobs_[head_ % kSlots]; }
  void push(Job* job) { jobs_[tail_++ % kSlots] = job; }
  Job* pop() { return jobs_[head_++ % kSlots]; }

 private:
  // Its own and, after an apply, those of the previous stage and the batch that it was forming.
  static constexpr uint32_t kSlots = 4 * kMaxDepth;
  std::array<Job*, kSlots> jobs_{};
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
};

// Counters of the stage's worker; any thread may read them.
struct StageCounts {
  std::atomic<uint64_t> jobs[exec::kCauses]{};
  std::atomic<uint64_t> pkts{0};
  std::atomic<uint64_t> refused_pkts{0};
  std::atomic<uint64_t> inline_pkts{0};
  std::atomic<uint64_t> taken_back_jobs{0};  // not begun by their device in time
  std::atomic<uint64_t> job_ns{0};           // sum over jobs, from submission until handed out
  std::atomic<uint64_t> bytes{0};            // length of each job's first packet, times its packets
  // By place, of finished jobs: time that the device or the worker spent.
  struct Done {
    std::atomic<uint64_t> jobs{0};
    std::atomic<uint64_t> pkts{0};
    std::atomic<uint64_t> run_ns{0};
  };
  Done done[kMaxPlaces];

  static void add(std::atomic<uint64_t>& to, uint64_t n) {
    to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};

class Stage final : public FeederQueue {
 public:
  static constexpr uint32_t kDefaultBatchPkts = 256;

  // `of`: the module kind whose function runs on devices.
  Stage(const Args& args, const ModuleInfo& of);
  ~Stage() override;

  void consume(Context& ctx, Batch& batch) noexcept;
  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept;

  void inherit(Module& old_module) override;
  void adopt(Module& old_module) noexcept override;
  void begin_drain() override { is_draining_ = true; }
  void give_up_held(const std::function<void(Packet*)>& take) override;
  [[nodiscard]] uint64_t held_pkts() const override;
  [[nodiscard]] uint64_t taken_pkts() const override;
  [[nodiscard]] uint32_t max_held_pkts() const override;

  Value command(const std::string& verb, const Value& args) override;
  [[nodiscard]] Value show() const override;
  [[nodiscard]] Dict saved_params() const override;

  [[nodiscard]] bool is_stage() const override { return true; }
  [[nodiscard]] exec::StagePeriod stage_period() const override;
  [[nodiscard]] uint32_t max_job_pkts() const override { return max_batch_pkts_; }
  void set_stage(const exec::StageChange& change) override;

  [[nodiscard]] Runner& runner() { return *runner_; }

  // Live, from the next batch on. Batches are cut to max_batch_pkts. Control thread.
  void place(const Placing& placing);
  [[nodiscard]] const StageCounts& counts() const { return counts_; }
  [[nodiscard]] uint32_t max_batch_pkts() const { return max_batch_pkts_; }
  [[nodiscard]] uint32_t n_places() const { return static_cast<uint32_t>(places_.size()); }
  [[nodiscard]] const std::string& kind() const { return runner_->info().kind; }
  // The law of its batches there; null if neither given nor measured.
  [[nodiscard]] const BatchLaw* law_on(const Device& device) const;
  // Null: the stage's own worker.
  [[nodiscard]] const Device* device_at(uint32_t place) const {
    return places_[place].device.get();
  }

 private:
  // The places that its jobs may go to; with no device, only the stage's own worker.
  struct Place {
    std::string name;
    std::shared_ptr<Device> device;
    Lane* lane = nullptr;
  };
  // A device that lost jobs gets none for a while, twice as long each time.
  struct Trust {
    uint64_t avoided_until_ns = 0;
    uint64_t next_pause_ns = 0;
  };
  static constexpr uint64_t kFirstPauseNs = 10'000'000;
  static constexpr uint64_t kLongestPauseNs = 1'000'000'000;

  // `own`: the value of the module's `device` key.
  Stage(const Args& args, const Args& own, const ModuleInfo& of);
  void add_place(const std::string& name, const Args& args);
  [[nodiscard]] uint32_t place_named(const std::string& name) const;
  void set(const Value& args);
  void renew_tables();
  bool gather(uint32_t engine_batch_pkts) noexcept;
  uint32_t give_out(Context& ctx, Packet** pkts, uint32_t max) noexcept;
  [[nodiscard]] uint8_t cause_to_submit(uint64_t now_ns, bool has_come) noexcept;
  void submit(uint64_t now_ns, uint8_t cause) noexcept;
  [[nodiscard]] bool is_ready(Job& job, Context& ctx) noexcept;
  bool take_back(Job& job, uint64_t now_ns) noexcept;
  static void settle(Job& job) noexcept;
  std::unique_ptr<Job> release(const Job* job) noexcept;
  void run_chunk(Job& job, Context& ctx, uint32_t n_pkts) noexcept;
  void finish(Job& job, uint64_t now_ns) noexcept;
  void next_forming() noexcept;
  [[nodiscard]] uint32_t next_place() noexcept;
  [[nodiscard]] uint32_t wanted_pkts() const noexcept {
    return batch_pkts_[forming_place_].load(std::memory_order_relaxed);
  }
  [[nodiscard]] uint32_t main_place() const;
  [[nodiscard]] Placing placing() const;
  void add_inside(int64_t n) {
    inside_pkts_.store(inside_pkts_.load(std::memory_order_relaxed) + static_cast<uint64_t>(n),
                       std::memory_order_relaxed);
  }

  const std::unique_ptr<Runner> runner_;
  std::vector<Place> places_;
  std::vector<Trust> trust_;  // by place
  const uint32_t max_batch_pkts_;
  const uint32_t depth_;
  const bool is_idle_hold_;
  // Written one by one by the control thread; a batch that still uses old values does no harm.
  std::array<std::atomic<double>, kMaxPlaces> share_{};
  std::array<std::atomic<uint32_t>, kMaxPlaces> batch_pkts_{};
  std::atomic<uint64_t> age_limit_ns_;
  std::atomic<double> refused_{0};
  std::vector<double> refused_due_;  // by worker: fractions of packets due to be refused
  // Packets given to each place, divided by its share: the place with the least is next. A place that had
  // none for a while starts level with the others.
  std::array<double, kMaxPlaces> pass_{};
  double virtual_pass_ = 0;

  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::unique_ptr<Job>> foreign_jobs_;  // of the previous stage
  std::vector<Job*> idle_;                          // reserved, so it never grows on the data path
  JobQueue under_way_;
  Job* forming_ = nullptr;
  uint32_t forming_place_ = 0;
  uint64_t forming_since_ns_ = exec::kNeverNs;  // the oldest task-entry time among its packets
  uint64_t next_number_ = 0;
  std::atomic<uint64_t> inside_pkts_{0};  // taken from the rings and not yet handed out
  bool is_draining_ = false;
  StageCounts counts_;
};

}  // namespace batchplane::offload
