// SPDX-License-Identifier: BSD-3-Clause
// meter.cc - measures the packet rate over windows of the worker's clock.
//
// in: 1   out: 1   drops: none   state: totals and the last window
#include "core/module/register.h"
#include "modules/common/tally.h"

namespace batchplane {
namespace {

class Meter final : public Module {
 public:
  explicit Meter(const Args& args) : window_ns_(args.u64("window_ns")) {}

  void process(Context& ctx, Batch& batch) noexcept {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) bytes += batch[i]->len_bytes();
    if (start_ns_ == 0) [[unlikely]]
      start_ns_ = last_ns_ = ctx.now_ns;
    if (ctx.now_ns - start_ns_ >= window_ns_) [[unlikely]]
      close_window(ctx.now_ns);
    gap_ns_ = std::max(gap_ns_, ctx.now_ns - last_ns_);
    last_ns_ = ctx.now_ns;
    pkts_.add(batch.size_pkts);
    bytes_.add(bytes);
  }

  // Closes windows in which no packet came.
  [[nodiscard]] uint64_t housekeep_interval_ns() const override { return window_ns_; }
  void housekeep(Context& ctx, uint64_t /*budget_ns*/) noexcept override {
    if (start_ns_ != 0 && ctx.now_ns - start_ns_ >= window_ns_) close_window(ctx.now_ns);
  }

  [[nodiscard]] Value show() const override {
    const double seconds = static_cast<double>(span_ns_.value()) * 1e-9;
    const auto per_second = [&](const Tally& count) {
      return seconds > 0 ? static_cast<double>(count.value()) / seconds : 0.0;
    };
    return Dict{{"pkts", pkts_.value()},
                {"bytes", bytes_.value()},
                {"rate_pps", per_second(window_pkts_)},
                {"rate_bps", 8 * per_second(window_bytes_)},
                {"peak_pps", static_cast<double>(peak_pps_.value())},
                {"gap_max_ns", window_gap_ns_.value()},
                {"window_ns", span_ns_.value()}};
  }

  void adopt(Module& old) noexcept override {
    auto& other = static_cast<Meter&>(old);
    for (auto member : {&Meter::pkts_, &Meter::bytes_, &Meter::window_pkts_, &Meter::window_bytes_,
                        &Meter::span_ns_, &Meter::window_gap_ns_, &Meter::peak_pps_}) {
      (this->*member).set((other.*member).value());
    }
    start_ns_ = other.start_ns_;
    last_ns_ = other.last_ns_;
    gap_ns_ = other.gap_ns_;
    start_pkts_ = other.start_pkts_;
    start_bytes_ = other.start_bytes_;
  }

 private:
  void close_window(uint64_t now_ns) {
    const uint64_t span_ns = now_ns - start_ns_;
    const uint64_t pkts = pkts_.value() - start_pkts_;
    window_pkts_.set(pkts);
    window_bytes_.set(bytes_.value() - start_bytes_);
    span_ns_.set(span_ns);
    window_gap_ns_.set(std::max(gap_ns_, now_ns - last_ns_));
    const double pps = static_cast<double>(pkts) * 1e9 / static_cast<double>(span_ns);
    peak_pps_.set(std::max(peak_pps_.value(), static_cast<uint64_t>(pps)));
    start_ns_ = now_ns;
    start_pkts_ = pkts_.value();
    start_bytes_ = bytes_.value();
    gap_ns_ = 0;
  }

  const uint64_t window_ns_;
  Tally pkts_;
  Tally bytes_;
  Tally window_pkts_;  // the last complete window
  Tally window_bytes_;
  Tally span_ns_;
  Tally window_gap_ns_;
  Tally peak_pps_;
  uint64_t start_ns_ = 0;  // worker: the current window; 0 before the first packet
  uint64_t last_ns_ = 0;
  uint64_t gap_ns_ = 0;
  uint64_t start_pkts_ = 0;
  uint64_t start_bytes_ = 0;
};

const Register<Meter> kMeter{{
    .kind = "meter",
    .state = StateOf::kNone,
    .help = "Measures the packet and bit rate of what passes, and the longest gap.",
    .params = {{.name = "window_ns",
                .type = ParamType::kInt,
                .unit = "ns",
                .default_value = 100'000'000,
                .help = "time over which a rate is taken",
                .min = 1000,
                .max = 60e9}},
    .notes =
        "Rates are those of the last whole window and fall to 0 when traffic stops. Bits are those "
        "of frames, without preamble, gap and check sequence.",
}};

}  // namespace
}  // namespace batchplane
