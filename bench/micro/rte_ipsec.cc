// SPDX-License-Identifier: BSD-3-Clause
// rte_ipsec.cc - ESP tunnels beside DPDK's rte_ipsec over its devices in software: ns per packet in full bursts, and
// where packets come 1, 2 or 4 at a time. Those a pipeline of ours collects in a buffer in front of the module.
// rte_ipsec processes them as they come, by its queue ("to end") or by calls ("call"); or has some wait inside, too:
// where its queue is polled once for each arrival ("polled"), or operations are held until 32 are there ("held", as
// in ipsec-secgw, for up to 100 us). Neither end has a replay window, as packets repeat.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/hex.h"
#include "common/engine_bench.h"
#include "common/environment.h"
#include "common/lone_module.h"
#include "common/report.h"
#include "core/module/register.h"
#include "reference/ipsec_case.h"

namespace {

using namespace batchplane;  // NOLINT: a benchmark over the whole engine
using bench::Contender;
using bench::IpsecCase;
using bench::IpsecPeer;
using bench::PeerWay;
using bench::Result;

constexpr uint32_t kMemoryMb = 1024;
constexpr uint32_t kBurstPkts = IpsecPeer::kMaxBurstPkts;  // a batch, in however many arrivals
constexpr uint32_t kPoolPkts = 4096;
constexpr double kTimesInBursts = 1.5;
constexpr double kTimesCollected = 3;

// What arrives in a pipeline: the same packet again and again, a few at a time.
class Arrivals final : public Module {
 public:
  explicit Arrivals(const Args& args)
      : written_bytes_(args.u32("written_bytes")), burst_pkts_(args.u32("burst_pkts")) {
    const std::string text = args.string("frame");
    for (size_t i = 0; i + 1 < text.size(); i += 2) {
      const uint32_t byte = hex_digit_of(text[i]) << 4 | hex_digit_of(text[i + 1]);
      frame_.push_back(static_cast<uint8_t>(byte));
    }
  }
  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    const uint32_t n = std::min(max, burst_pkts_);
    if (!ctx.pool->alloc_bulk(pkts, n)) return 0;
    for (uint32_t i = 0; i < n; ++i) {
      bench::write_packet(*pkts[i], frame_, written_bytes_);
      pkts[i]->meta().entry_ns = ctx.now_ns;
    }
    return n;
  }

 private:
  const uint32_t written_bytes_;
  const uint32_t burst_pkts_;
  bench::Frame frame_;
};

const Register<Arrivals> kArrivals{
    {.kind = "bench_arrivals",
     .state = StateOf::kOneOwner,
     .help = "Makes the same packet again and again.",
     .params = {{.name = "frame", .type = ParamType::kString, .help = "in hexadecimal"},
                {.name = "written_bytes", .type = ParamType::kInt, .help = "of each packet"},
                {.name = "burst_pkts", .type = ParamType::kInt, .help = "packets per poll"}},
     .feed = Feed::kItself}};

// Arrivals of n -> a buffer with the trigger given and the module -> a sink.
PipelineSpec pipeline_of(const IpsecCase& of, uint32_t n, uint32_t trigger_pkts) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string frame;
  for (const uint8_t byte : of.frame) frame += {kDigits[byte >> 4], kDigits[byte & 15]};
  bench::SpecBuilder b;
  b.spec.name = "collected";
  // Only the trigger is to release packets.
  b.spec.engine.is_idle_hold = true;
  b.spec.engine.stranding_limit_ns = 60'000'000'000;
  b.module("in", "bench_arrivals",
           {{"frame", frame}, {"written_bytes", of.written_bytes}, {"burst_pkts", n}});
  b.module("esp", of.kind(), of.params(), trigger_pkts).module("out", "sink");
  b.edge("in", "esp").edge("esp", "out");
  return b.spec;
}

Contender ours_alone(const IpsecCase& of, PacketPool& pool) {
  auto module = std::make_shared<bench::LoneModule>(of.kind(), of.params(), of.gates());
  auto ring = std::make_shared<bench::PacketRing>(pool, of);
  return {.name = "ours", .run = [module, ring](uint32_t n_batches) {
            uint64_t pkts = 0;
            for (uint32_t b = 0; b < n_batches; ++b) {
              pkts += module->run(ring->next(kBurstPkts), kBurstPkts);
            }
            return pkts;
          }};
}

Contender ours_collected(const IpsecCase& of, uint32_t n, uint32_t trigger_pkts) {
  static uint32_t n_made = 0;
  auto engine = std::make_shared<bench::EngineBench>(pipeline_of(of, n, trigger_pkts),
                                                     "esp" + std::to_string(n_made++));
  return {
      .name = "ours, trigger " + std::to_string(trigger_pkts),
      .run = [engine, n](uint32_t n_batches) { return engine->run(n_batches * (kBurstPkts / n)); },
      .verify = [engine] { return engine->verify(); }};
}

Contender theirs(const IpsecCase& of, const std::string& driver, PeerWay way, uint32_t n,
                 PacketPool& pool) {
  auto peer = std::make_shared<IpsecPeer>(of.peer(driver, way));
  auto ring = std::make_shared<bench::PacketRing>(pool, of);
  return {.name = driver + ", " + bench::name_of(way),
          .run =
              [peer, ring, n](uint32_t n_batches) {
                uint64_t pkts = 0;
                Packet* done[IpsecPeer::kMaxInsidePkts];
                for (uint32_t left = n_batches * kBurstPkts; left != 0; left -= n) {
                  pkts += peer->run(ring->next(n), n, done);
                }
                pkts += peer->drain(done);
                if (peer->failed_pkts() != 0) throw std::runtime_error("rte_ipsec drops packets");
                return pkts;
              },
          .verify =
              [&of, &pool, driver, way, n] {
                bench::compare_with_peer(of, driver, way, n, pool);
                return std::string();
              }};
}

std::vector<std::string> drivers_of(const esp::Suite& suite) {
  std::vector<std::string> drivers{"crypto_aesni_mb"};
  if (suite.cipher == esp::Cipher::kGcm) drivers.emplace_back("crypto_aesni_gcm");
  return drivers;
}

// How many times as fast ours is as the fastest of theirs whose way is among those given.
void report_times(bench::Report& report, const std::string& label,
                  const std::vector<Result>& results, std::initializer_list<PeerWay> ways,
                  std::optional<bench::Target> target) {
  const auto mpps_of = [](const Result& result) {
    char text[32];
    std::snprintf(text, sizeof text, " %.2f Mpps", 1e3 / bench::median_of(result.ns_per_pkt));
    return std::string(text);
  };
  const Result& ours = results.front();
  const Result* fastest = nullptr;
  for (const Result& result : results) {
    const bool is_among = std::ranges::any_of(
        ways, [&](PeerWay way) { return result.name.ends_with(bench::name_of(way)); });
    if (!is_among) continue;
    if (fastest == nullptr ||
        bench::median_of(result.ns_per_pkt) < bench::median_of(fastest->ns_per_pkt)) {
      fastest = &result;
    }
  }
  report.figure(label + ": times " + fastest->name, "x", bench::paired_ratio(*fastest, ours),
                target);
  report.note(label + ":" + mpps_of(ours) + ", " + fastest->name + mpps_of(*fastest));
}

void measure_bursts(bench::Report& report, const bench::Options& options, const IpsecCase& of,
                    PacketPool& pool) {
  const std::string label = of.label() + ", bursts of 32";
  if (!report.wants(label)) return;
  std::vector<Contender> contenders{ours_alone(of, pool)};
  for (const std::string& driver : drivers_of(*of.suite)) {
    for (const PeerWay way : {PeerWay::kToEnd, PeerWay::kCall, PeerWay::kPolled}) {
      contenders.push_back(theirs(of, driver, way, kBurstPkts, pool));
    }
  }
  const auto results = bench::run_interleaved(contenders, options.trials, options.batches);
  report.rows(label, results);
  report_times(report, label, results, {PeerWay::kToEnd, PeerWay::kCall, PeerWay::kPolled},
               bench::Target{kTimesInBursts, false});
}

void measure_few(bench::Report& report, const bench::Options& options, const IpsecCase& of,
                 uint32_t n, PacketPool& pool) {
  const std::string label = of.label() + ", " + std::to_string(n) + " at a time";
  if (!report.wants(label)) return;
  std::vector<Contender> contenders;
  for (const uint32_t trigger_pkts : {32U, 16U}) {
    contenders.push_back(ours_collected(of, n, trigger_pkts));
  }
  for (const std::string& driver : drivers_of(*of.suite)) {
    for (const PeerWay way : {PeerWay::kToEnd, PeerWay::kCall, PeerWay::kPolled, PeerWay::kHeld}) {
      contenders.push_back(theirs(of, driver, way, n, pool));
    }
  }
  const auto results = bench::run_interleaved(contenders, options.trials, options.batches);
  report.rows(label, results);
  report_times(report, label, results, {PeerWay::kToEnd, PeerWay::kCall},
               bench::Target{kTimesCollected, false});
  report_times(report, label, results, {PeerWay::kPolled, PeerWay::kHeld}, std::nullopt);
}

void measure(bench::Report& report, const bench::Options& options, const IpsecCase& of,
             PacketPool& pool) {
  measure_bursts(report, options, of, pool);
  for (const uint32_t n : {1U, 2U, 4U}) measure_few(report, options, of, n, pool);
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("rte_ipsec", options);
  PacketPool pool("rte_ipsec", kPoolPkts);
  for (const char* const name :
       {"aes-128-cbc-sha1", "aes-128-cbc-sha256", "aes-128-gcm", "chacha20-poly1305"}) {
    for (const uint32_t ip_bytes : {64U, 576U, 1424U}) {
      const IpsecCase encrypt = bench::make_encrypt_case(*esp::find_suite(name), ip_bytes, pool);
      measure(report, options, encrypt, pool);
      measure(report, options, bench::make_decrypt_case(encrypt, pool), pool);
    }
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 20, .batches = 100});
  return bench::guarded([&] { return run(options); });
}
