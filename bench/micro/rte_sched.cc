// SPDX-License-Identifier: BSD-3-Clause
// rte_sched.cc - DPDK's hierarchical scheduler beside ours: ns per packet taken out and put in again, 32 at a
// time, all flows saturated. There a flow is a pipe with one of its queues in use, in our tree a subscriber with
// one of its classes; 40 packets each. "N x 4": the tree alone beside it, with four queues of a pipe and four
// classes in use, of weights 1 to 4; 3 packets each. All pipes have the same part of the port's rate.
#include <rte_sched.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/environment.h"
#include "common/report.h"
#include "common/tree_load.h"
#include "core/packet/packet_pool.h"
#include "egress/arbiter/steady_load.h"
#include "egress/discipline/disciplines.h"

namespace {

using namespace batchplane::egress;

constexpr uint32_t kMemoryMb = 2048;
constexpr uint32_t kBatchPkts = 32;
constexpr uint32_t kPktsOfFlow = 40;
constexpr uint32_t kClasses = 4;
constexpr uint32_t kPktsOfClass = 3;
constexpr uint32_t kPktBytes = 64;
// 100 Gbit/s in bytes: never the limit here.
constexpr uint64_t kRate = 12'500'000'000;
// Credit of a pipe, about as much as a class of the tree may send in its turn. With more of it eight pipes keep
// the port to themselves for thousands of packets, which costs less and is not what shares are for.
constexpr uint64_t kPipeBurstBytes = 2000;

class RteSchedLoad {
 public:
  // Of each pipe so many queues, of the one traffic class that has several.
  RteSchedLoad(uint32_t pipes, uint32_t queues, uint32_t pkts_of_queue)
      : pool_("rte_sched" + std::to_string(pipes), pipes * queues * pkts_of_queue + 1024, 256) {
    make_port(pipes);
    for (uint32_t k = 0; k < pipes * queues * pkts_of_queue; ++k) {
      batchplane::Packet* pkt = nullptr;
      if (!pool_.alloc_bulk(&pkt, 1)) throw std::runtime_error("the pool is too small");
      pkt->reset(kPktBytes);
      rte_mbuf* mbuf = pkt->mbuf();
      rte_sched_port_pkt_write(port_.get(), mbuf, 0, k / queues % pipes, RTE_SCHED_TRAFFIC_CLASS_BE,
                               k % queues, RTE_COLOR_GREEN);
      if (rte_sched_port_enqueue(port_.get(), &mbuf, 1) != 1) {
        throw std::runtime_error("rte_sched refuses a packet");
      }
    }
  }

  uint64_t run(uint32_t n_batches) {
    uint64_t moved = 0;
    rte_mbuf* pkts[kBatchPkts];
    for (uint32_t b = 0; b < n_batches; ++b) {
      const int n = rte_sched_port_dequeue(port_.get(), pkts, kBatchPkts);
      back_pkts_ += static_cast<uint64_t>(
          rte_sched_port_enqueue(port_.get(), pkts, static_cast<uint32_t>(n)));
      moved += static_cast<uint64_t>(n);
    }
    moved_pkts_ += moved;
    return moved;
  }
  [[nodiscard]] std::string fault() {
    run(10);
    if (moved_pkts_ == 0) return "nothing moved";
    return moved_pkts_ == back_pkts_ ? "" : "packets were lost";
  }

 private:
  void make_port(uint32_t pipes) {
    const uint64_t pipe_rate = kRate / pipes;
    // A traffic class may send twenty times a pipe's credit in a period, which is in ms.
    const uint64_t period_ms = std::max<uint64_t>(10, kPipeBurstBytes * 20'000 / pipe_rate);
    rte_sched_pipe_params pipe{
        .tb_rate = pipe_rate, .tb_size = kPipeBurstBytes, .tc_period = period_ms};
    rte_sched_subport_profile_params profile{
        .tb_rate = kRate, .tb_size = 1'000'000, .tc_period = 10};
    rte_sched_subport_params subport{};
    for (auto& rate : profile.tc_rate) rate = kRate;
    // No packets come for the others, which may do without queues.
    pipe.tc_rate[RTE_SCHED_TRAFFIC_CLASS_BE] = pipe_rate;
    subport.qsize[RTE_SCHED_TRAFFIC_CLASS_BE] = 64;
    for (uint8_t q = 0; q < RTE_SCHED_BE_QUEUES_PER_PIPE; ++q) pipe.wrr_weights[q] = 1 + q;
    pipe.tc_ov_weight = 1;
    subport.n_pipes_per_subport_enabled = pipes;
    subport.pipe_profiles = &pipe;
    subport.n_pipe_profiles = subport.n_max_pipe_profiles = 1;
    rte_sched_port_params params{};
    params.name = "bench";
    params.rate = kRate;
    params.mtu = 1522;
    params.frame_overhead = RTE_SCHED_FRAME_OVERHEAD_DEFAULT;
    params.n_subports_per_port = 1;
    params.subport_profiles = &profile;
    params.n_subport_profiles = params.n_max_subport_profiles = 1;
    params.n_pipes_per_subport = pipes;
    port_.reset(rte_sched_port_config(&params));
    if (port_ == nullptr || rte_sched_subport_config(port_.get(), 0, &subport, 0) != 0) {
      throw std::runtime_error("rte_sched refuses its parameters");
    }
    for (uint32_t p = 0; p < pipes; ++p) {
      if (rte_sched_pipe_config(port_.get(), 0, p, 0) != 0) {
        throw std::runtime_error("rte_sched refuses a pipe");
      }
    }
  }

  struct FreePort {
    void operator()(rte_sched_port* port) const { rte_sched_port_free(port); }
  };
  batchplane::PacketPool pool_;
  std::unique_ptr<rte_sched_port, FreePort> port_;
  uint64_t moved_pkts_ = 0;
  uint64_t back_pkts_ = 0;
};

bench::Contender theirs(uint32_t pipes, uint32_t queues, uint32_t pkts_of_queue) {
  auto load = std::make_shared<RteSchedLoad>(pipes, queues, pkts_of_queue);
  return {.name = "rte_sched",
          .run = [load](uint32_t n) { return load->run(n); },
          .verify = [load] { return load->fault(); }};
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("rte_sched", options);
  for (const uint32_t flows : {32U, 1024U, 4096U}) {
    const std::string label = std::to_string(flows) + " flows";
    if (!report.wants(label)) continue;
    std::vector<bench::Contender> contenders{theirs(flows, 1, kPktsOfFlow)};
    for (const std::string_view name : {"drr", "qfq_plus", "qfq"}) {
      with_discipline(name, [&]<Discipline D>() {
        contenders.push_back(bench::load_contender<SteadyLoad<D>>(name, LoadShape{.flows = flows}));
      });
    }
    contenders.push_back(bench::tree_contender(
        "tree", {.subscribers = flows, .used_classes = 1, .pkts_of_leaf = kPktsOfFlow}));
    const auto results = bench::run_interleaved(contenders, options.trials, options.batches);
    report.rows(label, results);
    for (const bench::Result& result : results) {
      report.figure(result.name + ", " + label, "ns", bench::time_percentile(result, 0.1), {});
    }
  }
  // Pipes come in powers of two.
  for (const uint32_t subscribers : {32U, 1024U, 4096U, 131'072U}) {
    const std::string label = std::to_string(subscribers) + " x 4";
    if (!report.wants(label)) continue;
    const auto results = bench::run_interleaved(
        {theirs(subscribers, kClasses, kPktsOfClass),
         bench::tree_contender("tree", {.subscribers = subscribers, .pkts_of_leaf = kPktsOfClass})},
        options.trials, options.batches);
    report.rows(label, results);
    for (const bench::Result& result : results) {
      report.figure(result.name + ", " + label, "ns", bench::time_percentile(result, 0.1), {});
    }
    report.figure("times rte_sched, " + label, "x", bench::paired_ratio(results[0], results[1]),
                  {});
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 60, .batches = 1000});
  return bench::guarded([&] { return run(options); });
}
