// SPDX-License-Identifier: BSD-3-Clause
// device_loop.h - runs one module on one device alone: batches of one size from its own packets,
// timed by the product's own counters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/module/environment.h"
#include "core/packet/packet_pool.h"
#include "offload/stage.h"
#include "profile/stage.h"

namespace batchplane::profile {

// Times of batches of one size, each a mean over kTogether in a row, because a device that works on
// several at once may end them together. If the device has failed, there are fewer than kLeast.
struct DeviceTimes {
  static constexpr uint32_t kTogether = 4;
  static constexpr uint32_t kLeast = 3;

  std::vector<double> run_ns;   // the device's time, as used by placement
  std::vector<double> feed_ns;  // the worker's time to put packets in and take them out
  double wall_ns = 0;           // between ends of batches
  uint64_t jobs = 0;
  uint64_t dropped_pkts = 0;  // by the module
  [[nodiscard]] bool is_good() const { return run_ns.size() >= kLeast; }
};

class DeviceLoop {
 public:
  // `on`: a device of `env`, or inline. Packets are restored from `images` in order.
  // Throws ConfigError if the module cannot run there.
  DeviceLoop(Environment& env, PacketPool& pool, const ModuleSpec& module, const std::string& on,
             uint32_t max_batch_pkts, const std::vector<PacketImage>& images);
  ~DeviceLoop();
  DeviceLoop(const DeviceLoop&) = delete;
  DeviceLoop& operator=(const DeviceLoop&) = delete;

  [[nodiscard]] double mean_pkt_bytes() const { return mean_pkt_bytes_; }
  [[nodiscard]] bool has_own_memory() const;
  // Power of its device, if there is a sensor.
  [[nodiscard]] std::optional<double> watts() const;
  [[nodiscard]] const offload::StageCounts& counts() const { return stage_.counts(); }
  // Batches in flight: as many as a device with its own memory works on at once.
  static constexpr uint32_t kInside = offload::DeviceKernel::kSlots;
  // Runs batches of n for `ms`, and at least as many as is_good() requires; keeps `n_inside` in
  // flight.
  [[nodiscard]] DeviceTimes run(uint32_t n_pkts, double ms, uint32_t n_inside = kInside);
  // Runs two in turn, each always with a batch in flight. Returns both times, in this order.
  static std::pair<DeviceTimes, DeviceTimes> run_both(DeviceLoop& one, DeviceLoop& other,
                                                      uint32_t n_pkts, double ms);

 private:
  void begin(uint32_t n_pkts, uint32_t n_inside);
  void step();  // keeps batches in flight, and takes finished ones out
  [[nodiscard]] DeviceTimes end();
  [[nodiscard]] bool has_enough() const;
  void put_batch();
  void restore(Packet& pkt);
  void poll();
  void note_done(uint64_t now_ns);

  PacketPool& pool_;
  const std::vector<PacketImage>& images_;
  exec::FlowMeter meter_{1};
  std::unique_ptr<Context> ctx_ = std::make_unique<Context>();
  const ModuleInfo& info_;
  std::unique_ptr<Module> module_;
  offload::Stage& stage_;
  double mean_pkt_bytes_ = 0;
  std::vector<Packet*> pkts_;  // the first n_free_ are here
  uint32_t n_free_ = 0;
  size_t next_image_ = 0;
  const bool changes_bytes_;  // the module, of packets
  // Of the current run.
  uint32_t n_pkts_ = 0;
  uint32_t all_pkts_ = 0;
  uint64_t jobs_before_ = 0;
  uint64_t run_ns_before_ = 0;
  uint64_t first_end_ns_ = 0;
  uint64_t last_end_ns_ = 0;
  uint64_t feed_ns_ = 0;
  uint64_t fed_pkts_ = 0;
  uint64_t window_jobs_ = 0;  // not yet in times_
  uint64_t window_run_ns_ = 0;
  uint64_t timed_jobs_ = 0;
  DeviceTimes times_;
};

}  // namespace batchplane::profile
