// SPDX-License-Identifier: BSD-3-Clause
// gateway_spec.h - the papers' gateway and VRF pipelines in code, for benchmarks.
#pragma once

#include "common/engine_bench.h"

namespace bench {

struct GatewayShape {
  uint32_t vrfs = 1;  // VLANs, each with a table and next hops of its own; 1 = no VLANs at all
  uint32_t next_hops = 16;  // of each
  uint32_t fib_size = 500;
  uint32_t acl_rules = 100;
  bool is_stateful = false;    // NAPT instead of the paper's static pair
  bool is_random_acl = false;  // rules as in ClassBench, instead of the paper's
  uint32_t trigger_pkts = 0;   // of the buffer in front of each next hop's chain
};

// Per next hop: ACL, NAT, TTL, MAC rewrite, checksum, sink. Flows in turn.
batchplane::PipelineSpec gateway_spec(const GatewayShape& shape);

}  // namespace bench
