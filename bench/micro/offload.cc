// SPDX-License-Identifier: BSD-3-Clause
// offload.cc - what it costs a worker to hand batches to a thread on another core and take them back, and
// what applications cost a packet on each kind of device. For OpenCL on processors there is also the time that the
// library's own threads compute (`computing`), which others on the machine do not disturb.
//
// The worker puts batches into a stage, polls them out again, and does nothing else; the module on the
// device only reads the first byte of each packet, so that what is measured is the way there and back.
// Beside it: the same with the worker's own function call (`inline`). --core is the worker's. Applications
// on OpenCL are measured on whatever it has here first, and left out where it has nothing.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/pin_thread.h"
#include "base/rng.h"
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

uint64_t processor_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}
// Of all threads but this one.
uint64_t others_ns() {
  const uint64_t mine_ns = processor_ns(CLOCK_THREAD_CPUTIME_ID);
  return processor_ns(CLOCK_PROCESS_CPUTIME_ID) - mine_ns;
}

// One worker's side of a stage, with a fixed set of packets that go round.
class Loop {
 public:
  // Without a `thread` of the device's own the worker copies packets there.
  Loop(PacketPool& pool, const Work& work, const std::string& on, uint32_t batch_pkts,
       bool has_thread = true)
      : pkts_(kPkts) {
    PipelineSpec spec;
    spec.workers = {{"w0", 1}};
    // Nothing is taken back and run here, however late: ten times this law is 10 s.
    const Dict laws{{work.kind, Dict{{"batch_ns", 1'000'000'000}}}};
    Dict device{{"laws", laws}};
    if (has_thread) {
      device["cores"] = List{0};
    } else {
      device["threads"] = 0;
    }
    if (on != offload::kInline) spec.devices = {{on, on, device}};
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
    static_cast<offload::Stage&>(*stage_).runner().module().link(1);
    run_ = info.run;
    poll_ = info.poll;
    ctx_->meter = &meter_;
    if (!pool.alloc_bulk(pkts_.data(), kPkts)) throw std::runtime_error("the pool is too small");
    Rng rng(1);
    for (Packet* pkt : pkts_) {
      pkt->reset(work.frame_bytes);
      for (uint32_t i = 0; i < work.frame_bytes; ++i)
        pkt->data()[i] = static_cast<uint8_t>(rng.below(256));
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

// So many words of six letters.
List words(uint32_t n) {
  Rng rng(2);
  List rules;
  for (uint32_t id = 1; id <= n; ++id) {
    std::string word;
    for (uint32_t k = 0; k < 6; ++k) word += static_cast<char>('a' + rng.below(26));
    rules.push_back(Dict{{"id", id}, {"content", word}});
  }
  return rules;
}

struct Application {
  std::string label;
  std::string kind;
  Dict params;
};

void report_one(bench::Report& report, PacketPool& pool, const bench::Options& options,
                const std::string& label, const Work& work, uint32_t batch_pkts) {
  static const bool has_card = has_opencl();
  std::vector<std::string> places{offload::kInline, "cores"};
  if (has_card) places.emplace_back("opencl");
  std::vector<bench::Result> results;
  for (const std::string& place : places) {
    Loop loop(pool, work, place, batch_pkts);
    results.push_back({.name = place});
    for (uint32_t t = 0; t < options.trials; ++t)
      results.back().ns_per_pkt.push_back(loop.run(options.batches / 4));
  }
  if (has_card) {
    const uint64_t n = options.batches / 4;
    Loop loop(pool, work, "opencl", batch_pkts, false);
    loop.run(n);  // the first launch compiles
    results.push_back({.name = "computing"});
    for (uint32_t t = 0; t < options.trials; ++t) {
      const uint64_t before_ns = others_ns();
      loop.run(n);
      results.back().ns_per_pkt.push_back(static_cast<double>(others_ns() - before_ns) /
                                          static_cast<double>(n));
    }
  }
  report.rows(label, results);
}

void report_applications(bench::Report& report, PacketPool& pool, const bench::Options& options) {
  const Application all[] = {
      {"md5", "digest", {{"algorithm", "md5"}, {"scan", "frame"}}},
      {"dpi, 1000 words,", "dpi", {{"rules", words(1000)}, {"scan", "frame"}}},
      {"classify, 256-128-8,", "classify", {{"random", List{256, 128, 8}}, {"scan", "frame"}}}};
  for (const Application& application : all) {
    for (const uint32_t frame_bytes : {64U, 1472U}) {
      for (const uint32_t batch_pkts : {32U, 256U, 1024U}) {
        const std::string label = application.label + " of " + std::to_string(frame_bytes) +
                                  " bytes, batches of " + std::to_string(batch_pkts);
        if (!report.wants(label)) continue;
        report_one(report, pool, options, label,
                   {application.kind, application.params, frame_bytes}, batch_pkts);
      }
    }
  }
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("offload", options);
  PacketPool pool("offload", 4 * kPkts);
  report_way(report, pool, options);
  report_applications(report, pool, options);
  return report.finish();
}

}  // namespace
}  // namespace batchplane

int main(int argc, char** argv) {
  const bench::Options options =
      bench::parse_options(argc, argv, {.trials = 60, .batches = 200'000});
  return bench::guarded([&] { return batchplane::run(options); });
}
