// SPDX-License-Identifier: BSD-3-Clause
#include "core/module/feeder_queue.h"

namespace batchplane {

const DropReason reason::kQueueFull{
    "queue_full", "the queue of the next module or task had no room",
    "enlarge it (queue_pkts, size_pkts), give its module a larger weight, "
    "or that task another core"};

std::vector<ParamSpec> queue_params() {
  return {{.name = "size_pkts",
           .unit = "pkts",
           .default_value = 1024,
           .help = "packets that it holds for each worker that puts some in",
           .min = 1,
           .max = 1048576},
          {.name = "credit_pkts",
           .unit = "pkts",
           .default_value = 0,
           .help = "packets of them that may wait, live; 0: as many as it holds",
           .min = 0,
           .max = 1048576},
          {.name = "backpressure",
           .type = ParamType::kBool,
           .default_value = false,
           .help = "while there is no room for a batch, the sending task polls no input"}};
}

}  // namespace batchplane
