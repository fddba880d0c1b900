// SPDX-License-Identifier: BSD-3-Clause
// mac_rewrite.cc - sets the destination and source MAC addresses of every frame.
//
// in: 1   out: 1   drops: too_short   state: the two addresses, editable live
#include "core/module/register.h"
#include "modules/common/live_value.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

// `keep` masks the bits of the frame that stay.
struct Rewrite {
  uint64_t set_front = 0;
  uint64_t keep_front = ~0ULL;
  uint32_t set_back = 0;
  uint32_t keep_back = ~0U;

  // Both addresses are replaced: no need to read the frame.
  [[nodiscard]] bool is_whole() const { return (keep_front | keep_back) == 0; }
};

class MacRewrite final : public Module {
 public:
  explicit MacRewrite(const Args& args)
      : live_(rewrite_of(args.string("dst"), args.string("src")), args.env().quiescence),
        dst_(args.string("dst")),
        src_(args.string("src")) {}

  void process(Context& ctx, Batch& batch) noexcept {
    const Rewrite rewrite = live_.read();
    const bool is_whole = rewrite.is_whole();
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      auto& eth = header_in<net::Ethernet>(pkt, 0);
      if (pkt.len_bytes() < net::kEthBytes) [[unlikely]] {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      net::MacPair macs{0, 0};
      if (!is_whole) {
        macs = eth.macs();
        macs.front &= rewrite.keep_front;
        macs.back &= rewrite.keep_back;
      }
      eth.set_macs({macs.front | rewrite.set_front, macs.back | rewrite.set_back});
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb != "set") return Module::command(verb, args);
    if (!args.is_dict()) throw ConfigError("expected {dst, src}", "set", "give one or both");
    std::string dst = dst_;
    std::string src = src_;
    for (const auto& [key, value] : args.as_dict()) {
      if (key != "dst" && key != "src") {
        throw ConfigError("unknown key '" + key + "'", "set", "give dst, src or both");
      }
      if (!value.is_string() || !net::parse_mac(value.as_string())) {
        throw ConfigError("expected a MAC address", "set." + key, "such as 02:00:00:00:00:01");
      }
      (key == "dst" ? dst : src) = value.as_string();
    }
    live_.set(rewrite_of(dst, src));
    dst_ = dst;
    src_ = src;
    return show();
  }

  [[nodiscard]] Value show() const override { return saved_params(); }

  [[nodiscard]] Dict saved_params() const override {
    Dict params;
    if (!dst_.empty()) params["dst"] = dst_;
    if (!src_.empty()) params["src"] = src_;
    return params;
  }

 private:
  static Rewrite rewrite_of(const std::string& dst, const std::string& src) {
    constexpr net::Mac kNone{};
    constexpr net::Mac kAll{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const auto new_dst = net::parse_mac(dst);
    const auto new_src = net::parse_mac(src);
    const net::Ethernet set{.dst = new_dst.value_or(kNone), .src = new_src.value_or(kNone)};
    const net::Ethernet keep{.dst = new_dst ? kNone : kAll, .src = new_src ? kNone : kAll};
    return {.set_front = set.macs().front,
            .keep_front = keep.macs().front,
            .set_back = set.macs().back,
            .keep_back = keep.macs().back};
  }

  LiveValue<Rewrite> live_;
  std::string dst_;  // empty: not changed
  std::string src_;
};

const Register<MacRewrite> kMacRewrite{{
    .kind = "mac_rewrite",
    .state = StateOf::kNone,
    .help = "Sets the destination and source MAC addresses of every frame.",
    .params = {{.name = "dst",
                .type = ParamType::kMac,
                .default_value = "",
                .help = "new destination; left out: stays as it is"},
               {.name = "src",
                .type = ParamType::kMac,
                .default_value = "",
                .help = "new source; left out: stays as it is"}},
    .drops = {&reason::kTooShort},
    .notes = "Live command: set {dst, src}, one or both.",
}};

}  // namespace
}  // namespace batchplane
