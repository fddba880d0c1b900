// SPDX-License-Identifier: BSD-3-Clause
// disciplines.h - all packet schedulers, and their names in pipelines and on the command line.
#pragma once

#include <array>
#include <string_view>

#include "egress/discipline/drr.h"
#include "egress/discipline/fifo.h"
#include "egress/discipline/prio.h"
#include "egress/discipline/qfq.h"
#include "egress/discipline/qfq_plus.h"
#include "egress/discipline/wf2q_plus.h"

namespace batchplane::egress {

inline constexpr std::array<std::string_view, 6> kDisciplineNames{"fifo",      "prio", "drr",
                                                                  "wf2q_plus", "qfq",  "qfq_plus"};

// Calls `use.operator()<D>()` for the discipline of that name; false if there is none.
template <class Use>
bool with_discipline(std::string_view name, Use&& use) {
  if (name == "fifo") return use.template operator()<Fifo>(), true;
  if (name == "prio") return use.template operator()<Prio>(), true;
  if (name == "drr") return use.template operator()<Drr>(), true;
  if (name == "wf2q_plus") return use.template operator()<Wf2qPlus>(), true;
  if (name == "qfq") return use.template operator()<Qfq>(), true;
  if (name == "qfq_plus") return use.template operator()<QfqPlus>(), true;
  return false;
}

}  // namespace batchplane::egress
