// SPDX-License-Identifier: BSD-3-Clause
// offload.cc - what it costs a worker to hand batches to a thread on another core and take them back, and
// what a packet's digest costs on each kind of device.
//
// The worker puts batches into a stage, polls them out again, and does nothing else; the module on the
// device only reads the first byte of each packet, so that what is measured is the way there and back.
// Beside it: the same with the worker's own function call (`inline`). --core is the worker's. Digests on
// OpenCL are measured on whatever it has here first, and left out where it has nothing.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/pin_thread.h"
#include "common/environment.h"
#include "common/report.h"
#include "core/module/register.h"
#include "offload/opencl/opencl_device.h"
#include "offload/stage.h"
#include "spec/stages.h"

namespace batchplane {
namespace {

constexpr uint32_t kPkts = 4096;
constexpr uint32_t kMemoryMb = 256;

// Reads a byte of each packet.
class Touch final : public Module {
 public:
  explicit Touch(const Args& /*args*/) {}
  void process(Context& /*ctx*/, Batch& batch) noexcept {
    uint8_t sum = 0;
    for (Packet* pkt : batch) sum = static_cast<uint8_t>(sum + pkt->data()[0]);
    sum_ = sum;
  }

 private:
  volatile uint8_t sum_ = 0;
};

const Register<Touch> kTouch{
    {.kind = "bench_touch", .state = StateOf::kNone, .help = "bench", .can_offload = true}};

struct Work {
  std::string kind;
  Dict params;
  uint32_t frame_bytes;
};

// One worker's side of a stage, with a fixed set of packets that go round.
class Loop {
 public:
  Loop(PacketPool& pool, const Work& work, const std::string& on, uint32_t batch_pkts)
      : pkts_(kPkts) {
    PipelineSpec spec;
    spec.workers = {{"w0", 1}};
    // Nothing is taken back and run here, however late: ten times this law is 10 s.
    const Dict laws{{work.kind, Dict{{"batch_ns", 1'000'000'000}}}};
    if (on != offload::kInline) spec.devices = {{on, on, {{"cores", List{0}}, {"laws", laws}}}};
    std::vector<ConfigError> errors;
    Mistakes mistakes{errors, spec.source_map};
    offload::add_devices(spec, env_, nullptr, mistakes);
    if (!errors.empty()) throw errors.front();
    const ModuleInfo& info = *find_module_kind(work.kind + kStageSuffix);
    Dict params = work.params;
    params["device"] = Dict{{"on", List{on}}, {"batch_pkts", batch_pkts}, {"depth", 8}};
    Args args(info.params, params, "bench");
    args.set_env(&env_);
    args.set_name("work");
    stage_ = info.make(args);
    stage_->set_feeders({0});
    run_ = info.run;
    poll_ = info.poll;
    ctx_->meter = &meter_;
    if (!pool.alloc_bulk(pkts_.data(), kPkts)) throw std::runtime_error("the pool is too small");
    for (Packet* pkt : pkts_) {
      pkt->reset(work.frame_bytes);
      std::memset(pkt->data(), 0x5a, work.frame_bytes);
    }
    n_free_ = kPkts;
  }
  ~Loop() {
    stage_->give_up_held([](Packet* pkt) { PacketPool::free_bulk(&pkt, 1); });
    PacketPool::free_bulk(pkts_.data(), n_free_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // ns a packet over `n` packets that came out.
  double run(uint64_t n) {
    const TscClock& clock = TscClock::instance();
    const uint64_t begin_ns = clock.now_ns();
    uint64_t out = 0;
    while (out < n) {
      ctx_->now_ns = clock.now_ns();
      const uint32_t put = std::min(n_free_, exec::kDefaultBatchPkts);
      if (put != 0) {
        n_free_ -= put;
        run_(stage_.get(), *ctx_, &pkts_[n_free_], put);
      }
      const uint32_t got = poll_(*stage_, *ctx_, &pkts_[n_free_], exec::kDefaultBatchPkts);
      n_free_ += got;
      out += got;
    }
    return static_cast<double>(clock.now_ns() - begin_ns) / static_cast<double>(n);
  }

 private:
  Environment env_;
  exec::FlowMeter meter_{1};
  std::unique_ptr<Context> ctx_ = std::make_unique<Context>();
  std::unique_ptr<Module> stage_;
  void (*run_)(void*, Context&, Packet**, uint32_t) noexcept = nullptr;
  uint32_t (*poll_)(Module&, Context&, Packet**, uint32_t) noexcept = nullptr;
  std::vector<Packet*> pkts_;  // the first n_free_ are here
  uint32_t n_free_ = 0;
};

// There and back, by itself: the bound is what placement assumes of it.
void report_way(bench::Report& report, PacketPool& pool, const bench::Options& options) {
  const Work touch{"bench_touch", {}, 60};
  for (const uint32_t batch_pkts : {32U, 256U, 1024U}) {
    const std::string label = "stage, batches of " + std::to_string(batch_pkts);
    if (!report.wants(label)) continue;
    Loop inside(pool, touch, offload::kInline, batch_pkts);
    Loop away(pool, touch, "cores", batch_pkts);
    std::vector<bench::Result> results{{.name = "cores"}, {.name = "inline"}};
    for (uint32_t t = 0; t < options.trials; ++t) {
      results[0].ns_per_pkt.push_back(away.run(options.batches));
      results[1].ns_per_pkt.push_back(inside.run(options.batches));
    }
    report.rows(label, results);
    const bench::Interval ns = bench::time_percentile(results[0], 0.1);
    const double most_ns = 10 + 600.0 / batch_pkts;
    report.figure(label + ", there and back", "ns/pkt", ns, bench::Target{most_ns, true});
  }
}

bool has_opencl() {
  try {
    const offload::OpenClDevice any({}, {}, "");
    return true;
  } catch (const ConfigError& error) {
    std::fprintf(stderr, "without OpenCL: %s\n", error.line().c_str());
    return false;
  }
}

void report_digests(bench::Report& report, PacketPool& pool, const bench::Options& options) {
  std::vector<std::string> places{offload::kInline, "cores"};
  if (has_opencl()) places.emplace_back("opencl");
  for (const uint32_t frame_bytes : {64U, 1472U}) {
    for (const uint32_t batch_pkts : {32U, 256U, 1024U}) {
      const std::string label = "md5 of " + std::to_string(frame_bytes) + " bytes, batches of " +
                                std::to_string(batch_pkts);
      if (!report.wants(label)) continue;
      const Work work{"digest", {{"algorithm", "md5"}, {"scan", "frame"}}, frame_bytes};
      std::vector<bench::Result> results;
      for (const std::string& place : places) {
        Loop loop(pool, work, place, batch_pkts);
        results.push_back({.name = place});
        for (uint32_t t = 0; t < options.trials; ++t)
          results.back().ns_per_pkt.push_back(loop.run(options.batches / 4));
      }
      report.rows(label, results);
    }
  }
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("offload", options);
  PacketPool pool("offload", 4 * kPkts);
  report_way(report, pool, options);
  report_digests(report, pool, options);
  return report.finish();
}

}  // namespace
}  // namespace batchplane

int main(int argc, char** argv) {
  const bench::Options options =
      bench::parse_options(argc, argv, {.trials = 60, .batches = 200'000});
  return bench::guarded([&] { return batchplane::run(options); });
}
