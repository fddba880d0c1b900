// SPDX-License-Identifier: BSD-3-Clause
// eal_heap.cc - without DPDK there is nothing to initialise.
#include "ports/eal.h"

namespace batchplane::ports {

EalFacts start_eal(const EalOptions& options) {
  (void)options;
  return {.memory = "plain heap memory (built without DPDK)"};
}

void stop_eal() {}

}  // namespace batchplane::ports
