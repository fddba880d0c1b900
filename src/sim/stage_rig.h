// SPDX-License-Identifier: BSD-3-Clause
// stage_rig.h - for tests: a simulated stage with its queue, polled under the test's control.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sim/queue.h"
#include "sim/stage.h"

namespace batchplane::sim {

class StageRig {
 public:
  using Devices = std::vector<std::shared_ptr<Device>>;  // null: inline

  StageRig(const StageSpec& spec, const Devices& devices, uint32_t engine_batch_pkts = 32)
      : engine_batch_pkts_(engine_batch_pkts), queue_(1 << 20, 1 << 20, false) {
    queue_.add_ring();
    std::vector<Stage::Place> places;
    for (size_t p = 0; p < spec.places.size(); ++p) places.push_back({spec.places[p], devices[p]});
    queue_.set_stage(std::make_unique<Stage>(spec, std::move(places), engine_batch_pkts));
    stage().set_cost({}, engine_batch_pkts);
  }

  void put(uint32_t n, uint64_t at_ns, uint32_t size_bytes = 100) {
    for (uint32_t i = 0; i < n; ++i) {
      pkts_.push_back(std::make_unique<Packet>());
      *pkts_.back() = {.entry_ns = at_ns, .task_entry_ns = at_ns, .size_bytes = size_bytes};
      pkts_.back()->flow = next_++;
      (void)queue_.put(0, pkts_.back().get(), at_ns);
    }
  }
  // Numbers of the packets that come out; packets are numbered from 0 in the order they were put
  // in.
  std::vector<uint32_t> poll(uint64_t at_ns) {
    ctx_.clock.ticks = at_ns << kTicksPerNsLog2;
    std::vector<Packet*> out(engine_batch_pkts_);
    out.resize(stage().poll(queue_, ctx_, out.data(), engine_batch_pkts_));
    std::vector<uint32_t> numbers;
    for (const Packet* pkt : out) numbers.push_back(pkt->flow);
    return numbers;
  }
  // After a poll: when the next poll does anything.
  [[nodiscard]] uint64_t next_ns() const { return queue_.next_ns(); }
  [[nodiscard]] uint64_t now_ns() const { return ctx_.clock.ticks >> kTicksPerNsLog2; }
  [[nodiscard]] Dict show() const { return std::as_const(*queue_.stage()).show(now_ns(), 0, 0); }
  [[nodiscard]] int64_t jobs(const std::string& cause) const {
    return show()["jobs"][cause].as_int();
  }
  [[nodiscard]] uint64_t held_pkts() const { return queue_.held_pkts(); }
  [[nodiscard]] Stage& stage() { return *queue_.stage(); }

 private:
  const uint32_t engine_batch_pkts_;
  Queue queue_;
  Context ctx_;
  std::vector<std::unique_ptr<Packet>> pkts_;
  uint32_t next_ = 0;
};

// A stage on one device.
inline StageSpec stage_on(const std::string& device, BatchLaw law, uint32_t batch_pkts) {
  StageSpec spec;
  spec.places = {{device, law, 1}};
  spec.batch_pkts = spec.max_batch_pkts = batch_pkts;
  return spec;
}

inline std::shared_ptr<Device> make_device(const std::string& of_kind = "simulated",
                                           int64_t threads = 1) {
  return std::make_shared<Device>(DeviceSpec{"gpu", of_kind, {{"threads", threads}}});
}

// first .. first + n - 1
inline std::vector<uint32_t> numbers(uint32_t first, uint32_t n) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < n; ++i) all.push_back(first + i);
  return all;
}

}  // namespace batchplane::sim
