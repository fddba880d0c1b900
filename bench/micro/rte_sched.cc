// SPDX-License-Identifier: BSD-3-Clause
// rte_sched.cc - DPDK's hierarchical scheduler beside ours: ns per packet taken out and put in again, 32 at a
// time, all flows saturated. There a flow is a pipe with one of its queues in use, in our tree a subscriber with
// one of its classes; 40 packets each.
#include <rte_sched.h>

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

constexpr uint32_t kMemoryMb = 1024;
constexpr uint32_t kBatchPkts = 32;
constexpr uint32_t kPktsOfFlow = 40;
constexpr uint32_t kPktBytes = 64;
// 100 Gbit/s in bytes: never the limit here.
constexpr uint64_t kRate = 12'500'000'000;

class RteSchedLoad {
 public:
  explicit RteSchedLoad(uint32_t pipes)
      : pool_("rte_sched" + std::to_string(pipes), pipes * kPktsOfFlow + 1024, 256) {
    make_port(pipes);
    for (uint32_t k = 0; k < pipes * kPktsOfFlow; ++k) {
      batchplane::Packet* pkt = nullptr;
      if (!pool_.alloc_bulk(&pkt, 1)) throw std::runtime_error("the pool is too small");
      pkt->reset(kPktBytes);
      rte_mbuf* mbuf = pkt->mbuf();
      rte_sched_port_pkt_write(port_.get(), mbuf, 0, k % pipes, RTE_SCHED_TRAFFIC_CLASS_BE, 0,
                               RTE_COLOR_GREEN);
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
    rte_sched_pipe_params pipe{.tb_rate = kRate, .tb_size = 1'000'000, .tc_period = 10};
    rte_sched_subport_profile_params profile{
        .tb_rate = kRate, .tb_size = 1'000'000, .tc_period = 10};
    rte_sched_subport_params subport{};
    for (uint32_t tc = 0; tc < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; ++tc) {
      pipe.tc_rate[tc] = kRate;
      profile.tc_rate[tc] = kRate;
      subport.qsize[tc] = 64;
    }
    for (auto& weight : pipe.wrr_weights) weight = 1;
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

bench::Contender theirs(uint32_t flows) {
  auto load = std::make_shared<RteSchedLoad>(flows);
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
    std::vector<bench::Contender> contenders{theirs(flows)};
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
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 60, .batches = 1000});
  return bench::guarded([&] { return run(options); });
}
