// SPDX-License-Identifier: BSD-3-Clause
// executor_work.inl - estimated work of chains by the cost law; determines when the clock must be
// read.
#pragma once

namespace batchplane::exec {

// If batch sizes do not vary, the whole cost is booked per packet. The head of a chain has the sum
// over the chain.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::refresh_work_estimates(double ns_per_cycle) {
  constexpr uint64_t kMinSamples = 16;
  constexpr double kEvenVariation = 0.1;
  constexpr CostLaw::Line kByPkt{0, 1};
  for (size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    if (node.cost.batches < kMinSamples) continue;
    set_work_estimate(node, fit_line(CostSums(node.cost, ns_per_cycle), kByPkt, kEvenVariation));
  }
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::set_work_estimate(Node& node, const CostLaw::Line& cost) {
  constexpr double kMost = 65535;
  double per_batch_ns = cost.cost_per_batch_ns;
  double per_pkt_16ths = 16 * cost.cost_per_pkt_ns;
  if (node.after == After::kDirect) {
    per_batch_ns += node.next->queue->work_per_batch_ns;
    per_pkt_16ths += node.next->queue->work_per_pkt_16ths_ns;
  }
  node.queue->work_per_batch_ns = static_cast<uint16_t>(std::min(per_batch_ns, kMost));
  node.queue->work_per_pkt_16ths_ns = static_cast<uint16_t>(std::min(per_pkt_16ths, kMost));
}

}  // namespace batchplane::exec
