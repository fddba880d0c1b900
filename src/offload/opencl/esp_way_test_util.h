// SPDX-License-Identifier: BSD-3-Clause
// esp_way_test_util.h - one end of IPsec tunnels; tests choose whether batches go through devices or are run
// by the worker.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "offload/kernel_lane.h"
#include "offload/opencl/any_device_test_util.h"
#include "offload/opencl/module_side_test_util.h"

namespace batchplane::offload {
namespace esp_way_test {

using opencl_modules_test::Side;

inline constexpr uint32_t kMostPkts = 2048;

// A frame and its SA.
struct Sent {
  Bytes frame;
  uint32_t id = 0;
};

inline Dict sa_of(uint32_t id, const std::string& suite, Dict more = {}) {
  more["id"] = id;
  more["spi"] = 0x1000 + id;
  more["suite"] = suite;
  more.emplace("local", "192.0.2.1");
  more.emplace("remote", "192.0.2.2");
  return more;
}
inline Dict params_of(const List& sas) { return {{"sas", sas}, {"test_keys", true}}; }
// SAs of the other end.
inline Dict receiving(const Dict& params) {
  List sas;
  for (const Value& item : params.at("sas").as_list()) {
    Dict sa = item.as_dict();
    for (const char* const key : {"local", "remote", "udp", "first_sequence"}) sa.erase(key);
    sas.emplace_back(std::move(sa));
  }
  Dict all = params;
  all["sas"] = sas;
  return all;
}

class Way {
 public:
  Way(const std::string& kind, const Dict& params) : side(kind, params, kMostPkts) {}
  ~Way() {
    lanes_.clear();
    for (const auto& job : jobs_) PacketPool::free_bulk(job->pkts.get(), job->n_pkts);
  }
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;

  // Every packet is also computed on the CPU and compared.
  void add_device(const std::shared_ptr<const KernelDevice>& device) {
    lanes_.push_back(
        std::make_unique<KernelLane>(*device, side.runner, kMostPkts, 1, nullptr, "devices.x"));
    rings_.push_back(std::make_unique<SpscRing<LaneEntry>>(64));
  }
  // An edit by the control thread.
  void command(const std::string& verb, const Value& args) {
    side.runner.module().command(verb, args);
    for (const auto& lane : lanes_) lane->renew_table();
  }

  Job& submit(const std::vector<Sent>& all, uint32_t lane) {
    Job& job = make(all);
    const LaneEntry entry{&job, job.number, &side.runner};
    rings_[lane]->enqueue(&entry, 1);
    return job;
  }
  // Run by the worker once the lanes have reached this batch.
  Job& run_here(const std::vector<Sent>& all) {
    Job& job = make(all);
    take_back(job);
    return job;
  }
  void take_back(Job& job) {
    while (!side.runner.is_turn_of(job.number)) serve();
    ASSERT_TRUE(job.claim(job.number));
    for (uint32_t at = 0; at < job.n_pkts; at += exec::kMaxBatchPkts)
      side.runner.run(*side.ctx, &job.pkts[at], std::min(exec::kMaxBatchPkts, job.n_pkts - at));
    side.runner.end_turn_of(job.number);
    job.end();
  }
  bool serve_once(uint32_t lane) { return lanes_[lane]->serve(*rings_[lane], *side.ctx, 1); }
  void serve() {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i]->serve(*rings_[i], *side.ctx, 1);
      ASSERT_EQ(lanes_[i]->fault().what, nullptr) << lanes_[i]->fault().what;
    }
  }
  void finish() {
    while (!side.runner.is_turn_of(jobs_.size()) && !testing::Test::HasFailure()) serve();
  }
  // Output of all batches, in order.
  [[nodiscard]] std::vector<Bytes> left() const {
    std::vector<Bytes> frames;
    for (const auto& job : jobs_) {
      for (uint32_t i = 0; i < job->n_pkts; ++i) {
        Packet& pkt = *job->pkts[i];
        if ((pkt.meta().drop_reason & kDropFate) == 0)
          frames.emplace_back(pkt.data(), pkt.data() + pkt.len_bytes());
      }
    }
    return frames;
  }
  [[nodiscard]] std::vector<uint32_t> fates() const {
    std::vector<uint32_t> fates;
    for (const auto& job : jobs_) {
      for (uint32_t i = 0; i < job->n_pkts; ++i) fates.push_back(job->pkts[i]->meta().drop_reason);
    }
    return fates;
  }
  [[nodiscard]] KernelLane& lane(uint32_t i) { return *lanes_[i]; }

  Side side;

 private:
  Job& make(const std::vector<Sent>& all) {
    const auto n = static_cast<uint32_t>(all.size());
    jobs_.push_back(std::make_unique<Job>(n, &side.runner));
    Job& job = *jobs_.back();
    EXPECT_TRUE(side.pool.alloc_bulk(job.pkts.get(), n));
    for (uint32_t i = 0; i < n; ++i) {
      job.pkts[i]->reset(static_cast<uint32_t>(all[i].frame.size()));
      std::ranges::copy(all[i].frame, job.pkts[i]->data());
      job.pkts[i]->meta() = PacketMeta{};
      job.pkts[i]->meta().tunnel_id = all[i].id;
    }
    job.n_pkts = n;
    job.begin(jobs_.size() - 1);
    return job;
  }

  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::unique_ptr<KernelLane>> lanes_;
  std::vector<std::unique_ptr<SpscRing<LaneEntry>>> rings_;
};

inline std::vector<Sent> sent_of(const std::vector<Bytes>& frames) {
  std::vector<Sent> all;
  for (const Bytes& frame : frames) all.push_back({frame, 0});
  return all;
}

}  // namespace esp_way_test
}  // namespace batchplane::offload
