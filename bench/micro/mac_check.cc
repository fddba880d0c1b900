// SPDX-License-Identifier: BSD-3-Clause
// mac_check.cc - what it takes port_in to see that the frames of a batch are for its interface.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/environment.h"
#include "common/report.h"
#include "core/module/kind.h"

namespace {

using batchplane::Dict;
using batchplane::Packet;

constexpr uint32_t kMemoryMb = 256;
constexpr uint32_t kBatchPkts = 32;
constexpr double kMostNs = 0.5;
constexpr batchplane::net::Mac kMac{2, 0, 0, 0, 0, 1};

// Has the same packets each time, so that nothing but the module takes time.
class StillPort final : public batchplane::Port {
 public:
  explicit StillPort(batchplane::PacketPool& pool) {
    if (!pool.alloc_bulk(pkts_, kBatchPkts)) throw std::runtime_error("the pool is empty");
    for (Packet* const pkt : pkts_) {
      pkt->reset(60);
      std::memset(pkt->data(), 0, 60);
      std::memcpy(pkt->data(), kMac.data(), kMac.size());
    }
  }
  uint32_t rx_burst(Packet** pkts, uint32_t max, uint64_t /*now_ns*/) noexcept override {
    const uint32_t n = max < kBatchPkts ? max : kBatchPkts;
    std::memcpy(pkts, pkts_, n * sizeof(Packet*));
    return n;
  }
  uint32_t tx_burst(Packet** /*pkts*/, uint32_t n) noexcept override { return n; }
  [[nodiscard]] batchplane::PortStats stats() const override { return {}; }

 private:
  Packet* pkts_[kBatchPkts] = {};
};

struct Entry {
  Entry(batchplane::Environment& env, bool takes_any)
      : info(*batchplane::find_module_kind("port_in")) {
    std::vector<batchplane::ConfigError> errors;
    const Dict params{{"port", "p"}, {"interface", "lan"}, {"any_mac", takes_any}};
    batchplane::Args args(info.params, params, "bench", errors);
    args.set_env(&env);
    args.set_name("in");
    module = info.make(args);
  }
  uint64_t run(uint32_t n_batches) {
    Packet* pkts[kBatchPkts];
    uint64_t done = 0;
    for (uint32_t b = 0; b < n_batches; ++b) done += info.poll(*module, *ctx, pkts, kBatchPkts);
    return done;
  }

  const batchplane::ModuleInfo& info;
  std::unique_ptr<batchplane::Module> module;
  std::unique_ptr<batchplane::Context> ctx = std::make_unique<batchplane::Context>();
};

bench::Contender contender_of(const std::string& name, Entry& entry) {
  return {.name = name,
          .run = [&entry](uint32_t n) { return entry.run(n); },
          .verify =
              [&entry] {
                return entry.run(1) == kBatchPkts ? std::string()
                                                  : std::string("frames are missing");
              }};
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("mac_check", options);
  batchplane::PacketPool pool("mac_check", 64, 2048);
  batchplane::Environment env;
  env.ports["p"] = std::make_shared<StillPort>(pool);
  env.interfaces = {{.name = "lan", .port = "p", .index = 0, .mac = kMac}};
  Entry checked(env, false);
  Entry any(env, true);
  const auto results =
      bench::run_interleaved({contender_of("checked", checked), contender_of("any_mac", any)},
                             options.trials, options.batches);
  report.rows("port_in, batch 32", results);
  report.figure("the check, more than none", "ns", bench::paired_difference(results[0], results[1]),
                bench::Target{kMostNs});
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 400, .batches = 640});
  return bench::guarded([&] { return run(options); });
}
