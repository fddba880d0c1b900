// SPDX-License-Identifier: BSD-3-Clause
// flow_delay.h - one number for a flow's delay in a period.
#pragma once

#include "exec/control.h"

namespace batchplane::slo {

// The delay that the SLO is about: a percentile in (0, 1), 1 = the largest, 0 = the mean. Never
// understated by more than the width of a bucket; 0 when no packet left.
double measured_delay_ns(const exec::FlowPeriod& flow, double percentile);

// The same percentile from the buckets relative to the SLO: upper edge of the bucket, at most the
// largest delay seen. 0 without packets or without an SLO.
double bucket_percentile_ns(const exec::FlowPeriod& flow, double percentile);

}  // namespace batchplane::slo
