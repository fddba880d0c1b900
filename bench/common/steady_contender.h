// SPDX-License-Identifier: BSD-3-Clause
// steady_contender.h - a packet scheduler under a steady load, as a contender in a benchmark.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/trials.h"
#include "egress/arbiter/steady_load.h"

namespace bench {

template <batchplane::egress::Discipline D>
Contender steady_contender(std::string_view name, const batchplane::egress::LoadShape& shape) {
  auto load = std::make_shared<batchplane::egress::SteadyLoad<D>>(shape);
  return {.name = std::string(name),
          .run = [load](uint32_t n) { return load->run(n); },
          .verify = [load]() -> std::string {
            load->run(10);
            return load->is_whole() ? "" : "packets were lost";
          }};
}

}  // namespace bench
