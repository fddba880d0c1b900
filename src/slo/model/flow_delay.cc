// SPDX-License-Identifier: BSD-3-Clause
#include "slo/model/flow_delay.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {

using exec::SloBuckets;

double mean_delay_ns(const exec::FlowPeriod& flow) {
  if (flow.pkts == 0) return 0;
  return static_cast<double>(flow.delay_sum_ns) / static_cast<double>(flow.pkts);
}

// Upper edge of a bucket relative to the SLO, as a multiple of the SLO.
double upper_edge(uint32_t bucket) {
  if (bucket < SloBuckets::kWithin) return (bucket + 1.0) / SloBuckets::kWithin;
  return 1.0 + 0.25 * (bucket - SloBuckets::kWithin + 1.0);
}

}  // namespace

double bucket_percentile_ns(const exec::FlowPeriod& flow, double percentile) {
  uint64_t counted = 0;
  for (const uint64_t n : flow.slo_buckets) counted += n;
  if (counted == 0 || flow.slo_ns == 0) return 0;
  const double wanted = std::max(1.0, std::ceil(percentile * static_cast<double>(counted)));
  const auto max_ns = static_cast<double>(flow.delay_max_ns);
  uint64_t below = 0;
  for (uint32_t bucket = 0; bucket + 1 < SloBuckets::kCount; ++bucket) {
    below += flow.slo_buckets[bucket];
    if (static_cast<double>(below) < wanted) continue;
    const double edge_ns = upper_edge(bucket) * static_cast<double>(flow.slo_ns);
    return max_ns > 0 ? std::min(edge_ns, max_ns) : edge_ns;
  }
  return std::max(max_ns, upper_edge(SloBuckets::kCount - 2) * static_cast<double>(flow.slo_ns));
}

double measured_delay_ns(const exec::FlowPeriod& flow, double percentile) {
  if (flow.pkts == 0) return 0;
  if (percentile <= 0) return mean_delay_ns(flow);
  if (percentile >= 1) return static_cast<double>(flow.delay_max_ns);
  if (flow.delay_ns != 0) return static_cast<double>(flow.delay_ns);
  return bucket_percentile_ns(flow, percentile);
}

}  // namespace batchplane::slo
