// SPDX-License-Identifier: BSD-3-Clause
// set_meta.cc - sets a VRF, a mark or a tunnel in each packet's metadata, for the modules behind
// it.
//
// in: 1   out: 1   drops: none   state: the values, editable live
#include "core/module/register.h"
#include "modules/common/item_syntax.h"
#include "modules/common/live_value.h"

namespace batchplane {
namespace {

constexpr double kMax32 = 4294967295.0;

struct Notes {
  int64_t mark = -1;
  int64_t tunnel_id = -1;
  int32_t vrf = -1;
};

const std::vector<ParamSpec>& note_params() {
  static const std::vector<ParamSpec> kParams = {
      {.name = "vrf",
       .type = ParamType::kInt,
       .default_value = -1,
       .help = "routing table of the packets; -1 leaves theirs",
       .min = -1,
       .max = 0xffff},
      {.name = "mark",
       .type = ParamType::kInt,
       .default_value = -1,
       .help = "a number for later modules; -1 leaves theirs",
       .min = -1,
       .max = kMax32},
      {.name = "tunnel_id",
       .type = ParamType::kInt,
       .default_value = -1,
       .help = "tunnel that an encapsulation takes; -1 leaves theirs",
       .min = -1,
       .max = kMax32},
  };
  return kParams;
}

Notes notes_of(const Args& args) {
  return {args.integer("mark"), args.integer("tunnel_id"),
          static_cast<int32_t>(args.integer("vrf"))};
}

class SetMeta final : public Module {
 public:
  explicit SetMeta(const Args& args)
      : live_(notes_of(args), args.env().quiescence), values_(values_of(note_params(), args)) {}

  void process(Context& /*ctx*/, Batch& batch) noexcept {
    const Notes notes = live_.read();
    Packet* const* const pkts = batch.pkts;
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      if (notes.vrf >= 0) pkt.meta().vrf = static_cast<uint16_t>(notes.vrf);
      if (notes.tunnel_id >= 0) pkt.meta().tunnel_id = static_cast<uint32_t>(notes.tunnel_id);
      if (notes.mark >= 0) pkt.set_mark(static_cast<uint32_t>(notes.mark));
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb != "set") return Module::command(verb, args);
    const Args checked = checked_set(note_params(), values_, args);
    live_.set(notes_of(checked));
    values_ = values_of(note_params(), checked);
    return show();
  }
  [[nodiscard]] Value show() const override { return values_; }
  [[nodiscard]] Dict saved_params() const override { return values_; }

 private:
  LiveValue<Notes> live_;
  Dict values_;
};

const Register<SetMeta> kSetMeta{{
    .kind = "set_meta",
    .state = StateOf::kNone,
    .help = "Notes a VRF, a mark or a tunnel with every packet, for the modules behind it.",
    .params = note_params(),
    .notes = "Behind a port_in it gives all packets of an interface their VRF. Live command: set "
             "{vrf, mark, tunnel_id}, some or all.",
}};

}  // namespace
}  // namespace batchplane
