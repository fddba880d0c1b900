// SPDX-License-Identifier: BSD-3-Clause
// load_contender.h - a load that never changes as a contender in a benchmark: it runs batches, and tells
// whether all packets are still there.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/trials.h"

namespace bench {

template <class Load, class Shape>
Contender load_contender(std::string_view name, const Shape& shape) {
  auto load = std::make_shared<Load>(shape);
  return {.name = std::string(name),
          .run = [load](uint32_t n) { return load->run(n); },
          .verify = [load]() -> std::string {
            load->run(10);
            return load->is_whole() ? "" : "packets were lost";
          }};
}

}  // namespace bench
