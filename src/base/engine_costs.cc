// SPDX-License-Identifier: BSD-3-Clause
#include "base/engine_costs.h"

#include <vector>

#include "base/error.h"
#include "base/nearest_word.h"

namespace batchplane {

HopFields fields_of(HopCosts& costs) {
  return {{{"hop_send_per_pkt_ns", &costs.send_per_pkt_ns},
           {"hop_take_per_pkt_ns", &costs.take_per_pkt_ns}}};
}

EngineFields fields_of(EngineCosts& costs) {
  const auto [send, take] = fields_of(costs.hop);
  return {{{"clock_read_ns", &costs.clock_read_ns},
           {"empty_poll_ns", &costs.empty_poll_ns},
           {"poll_per_batch_ns", &costs.poll_per_batch_ns},
           {"poll_per_pkt_ns", &costs.poll_per_pkt_ns},
           {"scatter_per_branch_ns", &costs.scatter_per_branch_ns},
           {"scatter_per_pkt_ns", &costs.scatter_per_pkt_ns},
           {"firing_ns", &costs.firing_ns},
           {"buffered_per_pkt_ns", &costs.buffered_per_pkt_ns},
           {"ring_take_per_batch_ns", &costs.ring_take_per_batch_ns},
           {"ring_take_per_pkt_ns", &costs.ring_take_per_pkt_ns},
           {"egress_per_pkt_ns", &costs.egress_per_pkt_ns},
           send,
           take,
           {"far_per_batch_ns", &costs.far.per_batch_ns},
           {"far_per_pkt_ns", &costs.far.per_pkt_ns},
           {"far_early_per_pkt_ns", &costs.far.early_per_pkt_ns},
           {"sampled_per_batch_ns", &costs.sampled_per_batch_ns},
           {"generator_look_ns", &costs.generator.look_ns},
           {"generator_per_burst_ns", &costs.generator.per_burst_ns},
           {"generator_per_pkt_ns", &costs.generator.per_pkt_ns},
           {"generator_store_ns", &costs.generator.store_ns}}};
}

void read_cost_fields(const Value& given, const std::string& where,
                      std::span<const CostField> into) {
  std::vector<std::string> known;
  for (const CostField& field : into) known.emplace_back(field.key);
  for (const auto& [key, value] : given.as_dict()) {
    const auto found = std::ranges::find(known, key);
    if (found == known.end()) {
      const std::string near = nearest_word(key, known);
      throw ConfigError("unknown cost '" + key + "'", where + "." + key,
                        near.empty() ? "" : "did you mean '" + near + "'?");
    }
    const double ns = value.is_number() ? value.as_double() : -1;
    if (!(ns >= 0 && ns <= 1e9)) {
      throw ConfigError("expected a cost in ns", where + "." + key, "0 to 1e9");
    }
    *into[static_cast<size_t>(found - known.begin())].ns = ns;
  }
}

}  // namespace batchplane
