// SPDX-License-Identifier: BSD-3-Clause
// mirror.cc - copies every packet, or one in N, to a second gate.
//
// in: 1   out: forward, copy   drops: none   state: sampling, editable live; counters
#include <algorithm>

#include "core/module/register.h"
#include "modules/common/item_syntax.h"
#include "modules/common/live_value.h"
#include "modules/common/tally.h"

namespace batchplane {
namespace {

constexpr GateIndex kForwardGate = 0;
constexpr GateIndex kCopyGate = 1;

struct Sampling {
  uint32_t one_in = 1;
  uint32_t snap_bytes = kMaxFrameBytes;
  bool is_on = true;
};

const std::vector<ParamSpec>& sampling_params() {
  static const std::vector<ParamSpec> kParams = {
      {.name = "is_on", .type = ParamType::kBool, .default_value = true, .help = "copy at all"},
      {.name = "sample_one_in",
       .type = ParamType::kInt,
       .unit = "pkts",
       .default_value = 1,
       .help = "copy the first of so many",
       .min = 1,
       .max = 1'000'000'000},
      {.name = "snap_bytes",
       .type = ParamType::kInt,
       .unit = "bytes",
       .default_value = 0,
       .help = "copies end after so many bytes; 0 = whole packets",
       .min = 0,
       .max = kMaxFrameBytes},
  };
  return kParams;
}

Sampling sampling_of(const Args& args) {
  const uint32_t snap_bytes = args.u32("snap_bytes");
  return {args.u32("sample_one_in"), snap_bytes == 0 ? kMaxFrameBytes : snap_bytes,
          args.flag("is_on")};
}

class Mirror final : public Module {
 public:
  explicit Mirror(const Args& args)
      : live_(sampling_of(args), args.env().quiescence),
        values_(values_of(sampling_params(), args)) {}

  uint32_t link(uint32_t connected) override { return std::max(connected, kCopyGate + 1U); }
  [[nodiscard]] bool may_emit() const override { return true; }

  void classify(Context& ctx, Batch& batch) noexcept {
    const Sampling sampling = live_.read();
    const uint32_t n = batch.size_pkts;
    std::fill_n(ctx.gates, n, kForwardGate);
    if (!sampling.is_on) return;
    // A smaller `one_in` set by a command takes effect with the next packet.
    uint32_t next = std::min(until_next_, sampling.one_in - 1);
    while (next < n) {
      copy(ctx, *batch[next], sampling.snap_bytes);
      next += sampling.one_in;
    }
    until_next_ = next - n;
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb != "set") return Module::command(verb, args);
    const Args checked = checked_set(sampling_params(), values_, args);
    live_.set(sampling_of(checked));
    values_ = values_of(sampling_params(), checked);
    return show();
  }
  [[nodiscard]] Value show() const override {
    Dict shown = values_;
    shown["copied_pkts"] = copied_.value();
    shown["missed_pkts"] = missed_.value();
    return shown;
  }
  [[nodiscard]] Dict saved_params() const override { return values_; }
  void adopt(Module& old) noexcept override {
    const auto& other = static_cast<const Mirror&>(old);
    copied_.set(other.copied_.value());
    missed_.set(other.missed_.value());
    until_next_ = other.until_next_;
  }

 private:
  // The original is forwarded even if there is no copy.
  void copy(Context& ctx, Packet& original, uint32_t snap_bytes) noexcept {
    const uint32_t len_bytes = std::min(original.len_bytes(), snap_bytes);
    Packet* const pkt = can_emit(ctx) ? ctx.originate(0) : nullptr;
    if (pkt == nullptr) {
      missed_.add(1);
      return;
    }
    // The copy has at most as much headroom as the original, so any data that fits there fits here.
    const uint32_t headroom_bytes = std::min(original.headroom_bytes(), kHeadroomBytes);
    pkt->push_front(kHeadroomBytes - headroom_bytes);
    pkt->set_len_bytes(len_bytes);
    std::memcpy(pkt->data(), original.data(), len_bytes);
    note(original, *pkt);
    (void)ctx.emit(kCopyGate, pkt);
    copied_.add(1);
  }

  static bool can_emit(const Context& ctx) { return ctx.n_emitted < Context::kMaxEmitPkts; }

  // The copy gets the original's metadata, so that modules behind both gates see the same.
  static void note(Packet& original, Packet& pkt) noexcept {
    const PacketMeta& from = original.meta();
    PacketMeta& to = pkt.meta();
    to.next_hop = from.next_hop;
    to.tunnel_id = from.tunnel_id;
    to.path_state = from.path_state;
    to.vrf = from.vrf;
    to.in_interface = from.in_interface;
    to.l3_offset_bytes = from.l3_offset_bytes;
    to.l4_offset_bytes = from.l4_offset_bytes;
    copy_notes(original, pkt);
  }

  LiveValue<Sampling> live_;
  Dict values_;
  uint32_t until_next_ = 0;  // packets to pass before the next copy
  Tally copied_;
  Tally missed_;
};

const Register<Mirror> kMirror{{
    .kind = "mirror",
    .state = StateOf::kNone,
    .help = "Copies packets, or one in so many, to a second gate.",
    .params = sampling_params(),
    .gate_names = {"forward", "copy"},
    .notes = "Copies count as originated packets and enter the pipeline when they are made. Where "
             "the pool has none left, the original goes on and the copy counts as missed. Live "
             "command: set {is_on, sample_one_in, snap_bytes}, some or all.",
}};

}  // namespace
}  // namespace batchplane
