// SPDX-License-Identifier: BSD-3-Clause
// flow_book.h - the flows of a scheduler without a hierarchy.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "modules/egress/egress_book.h"
#include "modules/egress/egress_flows.h"

namespace batchplane {

class FlowBook final : public EgressBook {
 public:
  FlowBook(const Args& args, uint32_t max_flows);

  void add(const Value& args) override { edit(args, false); }
  void replace(const Value& args) override { edit(args, true); }
  void remove(const Value& args) override;
  void each_flow(const std::function<bool(uint32_t flow, Dict said)>& use) const override;
  [[nodiscard]] size_t n_flows() const override { return flows_.size(); }
  [[nodiscard]] std::vector<EgressNode> nodes() const override;
  [[nodiscard]] Dict saved_params() const override;
  [[nodiscard]] std::vector<egress::Bound> bounds(const EgressSettings& settings) const override;
  void tell_numbers(Dict& into) const override { into["flows"] = saved_params().at("flows"); }

  void configure_all(EgressScheduler& scheduler) const override;
  void take_over(EgressScheduler& scheduler, EgressBook& old) noexcept override;

 private:
  using Item = std::pair<uint32_t, egress::FlowParams>;

  void edit(const Value& args, bool must_exist);
  [[nodiscard]] std::vector<Item> parse(const List& items, const char* verb) const;

  EgressFlows flows_;
  const EgressFlowRules rules_;
};

}  // namespace batchplane
