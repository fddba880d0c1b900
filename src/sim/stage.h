// SPDX-License-Identifier: BSD-3-Clause
// stage.h - a simulated module on a device: does to batches what offload::Stage does, in virtual
// time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/batch_law.h"
#include "base/value.h"
#include "exec/node.h"
#include "exec/stage_period.h"
#include "placement/world.h"
#include "sim/device.h"
#include "sim/module.h"

namespace batchplane::sim {

class Queue;

struct StageSpec {
  struct Place {
    std::string device;
    BatchLaw law;  // of a device; inline, the module's cost applies
    double share = 0;
    bool is_known = false;  // what batches take there; only such places get any
  };
  std::vector<Place> places;
  uint32_t batch_pkts = 256;
  uint32_t max_batch_pkts = 256;
  uint64_t age_limit_ns = 100'000;
  uint32_t depth = 4;
  bool is_idle_hold = false;
};

// Owner: a queue; touched by the worker that polls it.
class Stage {
 public:
  struct Place {
    StageSpec::Place spec;
    std::shared_ptr<Device> device;  // null: inline
  };

  Stage(const StageSpec& spec, std::vector<Place> places, uint32_t engine_batch_pkts);

  // Takes packets from the queue's rings, submits batches that are due, and returns finished
  // packets.
  uint32_t poll(Queue& queue, Context& ctx, Packet** pkts, uint32_t max);
  // When a poll will next do anything. `ring_ns`: when the rings have a visible packet.
  [[nodiscard]] uint64_t next_ns(uint64_t ring_ns) const;
  // Packets taken from the rings and not yet returned.
  [[nodiscard]] uint64_t inside_pkts() const { return inside_pkts_; }
  [[nodiscard]] uint32_t max_inside_pkts() const {
    return (spec_.depth + 1) * spec_.max_batch_pkts;
  }
  // From the next batch on. Batches are cut to max_batch_pkts.
  void place(const placement::Placing& placing);
  [[nodiscard]] const placement::Placing& placing() const { return placing_; }
  // As `batchplane set MODULE device` does: on, batch_pkts, age_limit_ns. Throws ConfigError.
  void set(const Value& args);
  [[nodiscard]] exec::StagePeriod period() const;
  [[nodiscard]] uint32_t max_batch_pkts() const { return spec_.max_batch_pkts; }
  // Without what its rings hold and have lost.
  [[nodiscard]] placement::StageCounts counts() const;
  // Whether the next packet for this ring is dropped, because no device has time for it.
  bool refuses(uint32_t ring);
  // At the end: batches no longer wait to fill.
  void drain() { is_draining_ = true; }
  // Packets from rings that no longer exist: they go before everything still to be taken in.
  void carry(Packet* pkt) {
    carried_.push_back(pkt);
    ++inside_pkts_;
  }

  void set_cost(const CostLaw& cost, uint32_t batch_limit_pkts) {
    inline_.set_cost(cost, batch_limit_pkts);
  }
  [[nodiscard]] const CostLaw& cost() const { return inline_.cost; }
  // In the form of the engine's `show tables`. `queue_held_pkts`, `lost_pkts`: of its rings.
  [[nodiscard]] Dict show(uint64_t now_ns, uint64_t queue_held_pkts, uint64_t lost_pkts) const;

 private:
  struct Job {
    std::vector<Packet*> pkts;
    uint32_t place = 0;
    uint32_t n_given = 0;
    uint64_t submitted_ns = 0;
    uint64_t due_ns = 0;
    uint64_t run_ns = 0;
  };
  [[nodiscard]] uint32_t wanted_pkts() const { return placing_.batch_pkts[forming_place_]; }
  // Packets already there need not wait for the next batch, up to one engine batch.
  [[nodiscard]] uint32_t most_pkts() const {
    return std::max(wanted_pkts(), std::min(engine_batch_pkts_, spec_.max_batch_pkts));
  }
  [[nodiscard]] bool has_room_under_way() const {
    return under_way_.size() < spec_.depth || is_draining_;
  }
  bool gather(Queue& queue, uint64_t now_ns);
  [[nodiscard]] uint8_t cause_to_submit(uint64_t now_ns, bool has_come) const;
  void submit(uint64_t now_ns, uint8_t cause);
  [[nodiscard]] uint32_t next_place();
  uint32_t give_out(Context& ctx, Packet** pkts, uint32_t max);
  void finish(uint64_t now_ns);

  const StageSpec spec_;
  const std::vector<Place> places_;
  const uint32_t engine_batch_pkts_;
  std::vector<uint32_t> threads_;  // of the devices, by place
  Module inline_;                  // cost of a run on the worker
  bool is_draining_ = false;

  std::deque<Packet*> carried_;
  placement::Placing placing_;
  std::vector<double> refused_due_;  // by ring
  std::vector<Packet*> forming_;
  bool has_forming_place_ = false;
  uint32_t forming_place_ = 0;
  uint64_t forming_since_ns_ = exec::kNeverNs;  // earliest task entry in the forming batch
  std::deque<Job> under_way_;                   // oldest first
  // Packets given to each place over its share: the smallest is next.
  std::vector<double> pass_;
  double virtual_pass_ = 0;

  uint64_t inside_pkts_ = 0;
  std::array<uint64_t, exec::kCauses> jobs_ = {};
  uint64_t pkts_ = 0;
  uint64_t inline_pkts_ = 0;
  uint64_t job_ns_ = 0;
  uint64_t bytes_ = 0;
  uint64_t given_pkts_ = 0;
  uint64_t refused_pkts_ = 0;
  std::vector<placement::StageCounts::Done> done_;  // by place
};

}  // namespace batchplane::sim
