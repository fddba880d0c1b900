// SPDX-License-Identifier: BSD-3-Clause
// source.cc - inline packet source: makes packets on the worker itself, to measure ns per packet.
//
// in: 0   out: 1   drops: none   state: number of packets made Its packets enter at the time of the loop, so
// they never wait in a ring: to measure delays, use a generator on its own core instead.
#include <algorithm>
#include <atomic>

#include "core/module/register.h"
#include "traffic/template.h"

namespace batchplane {
namespace {

constexpr int64_t kMaxRatePps = 1'000'000'000;

class Source final : public Module {
 public:
  explicit Source(const Args& args)
      : frames_(traffic::parse_flows(args), traffic::parse_order(args.string("order")),
                args.u64("seed")),
        burst_pkts_(args.u32("burst_pkts") != 0 ? args.u32("burst_pkts")
                                                : args.env().batch_limit_pkts),
        is_freed_elsewhere_(args.env().n_workers > 1),
        left_pkts_(args.u64("limit_pkts") != 0 ? args.u64("limit_pkts") : ~0ULL),
        rate_pps_(args.u64("rate_pps")) {
    if (!args.string("interface").empty()) {
      in_interface_ = args.env().interface(args.string("interface")).index;
    }
  }

  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    auto n = static_cast<uint32_t>(std::min<uint64_t>(std::min(max, burst_pkts_), left_pkts_));
    if (n == 0 || is_off_.load(std::memory_order_relaxed)) return 0;
    if (const uint64_t rate_pps = rate_pps_.load(std::memory_order_relaxed); rate_pps != 0) {
      n = std::min(n, due_pkts(ctx.now_ns, rate_pps));
      if (n == 0) return 0;
      sent_pkts_ += n;
    }
    if (ctx.pool->data_bytes() < frames_.max_len_bytes() || !ctx.pool->alloc_bulk(pkts, n))
        [[unlikely]] {
      bump(starved_polls_, 1);
      return 0;
    }
    if (is_freed_elsewhere_) ctx.pool->prefetch_next(n);
    PacketMeta meta{};
    meta.entry_ns = ctx.now_ns;
    meta.in_interface = in_interface_;
    frames_.each_next(n, [&](uint32_t i, const traffic::TemplateSet::Frame& frame) {
      Packet& pkt = *pkts[i];
      pkt.reset(frame.len_bytes);
      traffic::copy_frame(traffic::fresh_data(pkt), frame.bytes, frame.len_bytes);
      traffic::copy32(&pkt.meta(), &meta);
    });
    left_pkts_ -= n;
    bump(made_pkts_, n);
    return n;
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "set") return set(args);
    if (verb != "on" && verb != "off") return Module::command(verb, args);
    is_off_.store(verb == "off", std::memory_order_relaxed);
    return Dict{};
  }

  [[nodiscard]] Value show() const override {
    return Dict{{"made_pkts", made_pkts_.load(std::memory_order_relaxed)},
                {"starved_polls", starved_polls_.load(std::memory_order_relaxed)},
                {"flows", static_cast<uint64_t>(frames_.frames().back().flow + 1)},
                {"mean_frame_bytes", frames_.mean_len_bytes() + traffic::kFcsBytes}};
  }

  [[nodiscard]] Dict saved_params() const override {
    return {{"rate_pps", rate_pps_.load(std::memory_order_relaxed)}};
  }

  void adopt(Module& old) noexcept override {
    const uint64_t made = static_cast<Source&>(old).made_pkts_.load(std::memory_order_relaxed);
    bump(made_pkts_, made);
    if (left_pkts_ != ~0ULL) left_pkts_ -= std::min(left_pkts_, made);
  }

 private:
  // A steady rate from the time it was set. When polled too rarely, packets beyond a few bursts are skipped.
  uint32_t due_pkts(uint64_t now_ns, uint64_t rate_pps) {
    if (rate_pps != paced_pps_) {
      paced_pps_ = rate_pps;
      since_ns_ = now_ns;
      sent_pkts_ = 0;
    }
    const auto wanted = static_cast<uint64_t>(static_cast<unsigned __int128>(now_ns - since_ns_) *
                                              rate_pps / 1'000'000'000);
    const uint64_t due = wanted - std::min(wanted, sent_pkts_);
    if (due > kMaxBursts * burst_pkts_) sent_pkts_ = wanted - kMaxBursts * burst_pkts_;
    return static_cast<uint32_t>(std::min<uint64_t>(due, kMaxBursts * burst_pkts_));
  }

  Value set(const Value& args) {
    const Value& rate = args["rate_pps"];
    const bool is_good = args.is_dict() && args.as_dict().size() == 1 && rate.is_int() &&
                         rate.as_int() >= 0 && rate.as_int() <= kMaxRatePps;
    if (!is_good) {
      throw ConfigError("expected {rate_pps: packets a second}", "set",
                        "0 (as fast as it is polled) to " + std::to_string(kMaxRatePps));
    }
    rate_pps_.store(static_cast<uint64_t>(rate.as_int()), std::memory_order_relaxed);
    return Dict{};
  }

  static void bump(std::atomic<uint64_t>& counter, uint64_t n) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  static constexpr uint64_t kMaxBursts = 4;

  traffic::TemplateSet frames_;
  const uint32_t burst_pkts_;
  const bool is_freed_elsewhere_;  // packets may come back from another core
  uint64_t left_pkts_;
  uint16_t in_interface_ = kNoInterface;
  std::atomic<bool> is_off_{false};
  std::atomic<uint64_t> rate_pps_;
  uint64_t paced_pps_ = 0;  // rate in force since since_ns_, and packets sent since then
  uint64_t since_ns_ = 0;
  uint64_t sent_pkts_ = 0;
  std::atomic<uint64_t> made_pkts_{0};
  std::atomic<uint64_t> starved_polls_{0};
};

const Register<Source> kSource{{
    .kind = "source",
    .state = StateOf::kOneOwner,
    .help = "Makes packets in the worker itself, as many as the engine takes.",
    .params = traffic::with_traffic_params({
        {.name = "burst_pkts",
         .unit = "pkts",
         .default_value = 0,
         .help = "packets per poll; 0 = the engine's batch size",
         .min = 0,
         .max = exec::kMaxBatchPkts},
        {.name = "rate_pps",
         .unit = "pps",
         .default_value = 0,
         .help = "a steady rate, live; 0 = as fast as it is polled",
         .min = 0,
         .max = kMaxRatePps},
        {.name = "limit_pkts",
         .unit = "pkts",
         .default_value = 0,
         .help = "stop after this many; 0 = never",
         .min = 0},
        {.name = "interface",
         .type = ParamType::kString,
         .default_value = "",
         .help = "interface on which the packets seem to come in; empty = none"},
    }),
    .notes = "Live commands: on, off, set rate_pps=... starved_polls counts polls for which the "
             "pool had no packets, "
             "or only packets smaller than the frames.",
    .feed = Feed::kItself,
    .frame_bytes = [](const Dict& params) { return traffic::longest_frame_bytes(params); },
}};

}  // namespace
}  // namespace batchplane
