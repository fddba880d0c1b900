// SPDX-License-Identifier: BSD-3-Clause
// early_drop.cc - drops packets that a scheduler further on would refuse, before they cost more work.
//
// in: 1   out: 1   drops: egress_full   state: none
#include "base/error.h"
#include "core/module/register.h"
#include "modules/common/flow_tree.h"
#include "modules/egress/egress_reasons.h"

namespace batchplane {
namespace {

class EarlyDrop final : public Module {
 public:
  explicit EarlyDrop(const Args& args)
      : scheduler_(args.string("scheduler")),
        where_(args.where() + ".scheduler"),
        place_(flow_tree_place(args.env(), scheduler_)) {}

  uint32_t link(uint32_t connected) override {
    tree_ = place_->tree;
    if (tree_ == nullptr) {
      throw ConfigError("there is no scheduler '" + scheduler_ + "'", where_,
                        "name a module of kind egress");
    }
    return connected;
  }

  [[nodiscard]] uint32_t scheduled_flow(Packet& pkt) const override {
    return tree_->scheduled_flow(pkt);
  }

  void process(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      if (tree_->refuses(*batch[i])) [[unlikely]]
        ctx.drop(batch, i, reason::kEgressFull);
    }
  }

 private:
  const std::string scheduler_;
  const std::string where_;
  const std::shared_ptr<FlowTreePlace> place_;
  FlowTree* tree_ = nullptr;
};

const Register<EarlyDrop> kEarlyDrop{{
    .kind = "early_drop",
    .state = StateOf::kNone,
    .help = "Drops packets whose queue in a later scheduler is full, before they cost more work.",
    .params = {{.name = "scheduler",
                .type = ParamType::kString,
                .help = "the module of kind egress that these packets go to"}},
    .drops = {&reason::kEgressFull},
    .notes = "Place it as early as the packet has what flow_by reads: addresses and DSCP are there "
             "from the start, a mark only behind the module that sets it.",
}};

}  // namespace
}  // namespace batchplane
