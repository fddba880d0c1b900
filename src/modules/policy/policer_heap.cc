// SPDX-License-Identifier: BSD-3-Clause
// policer_heap.cc - three-colour markers with two token buckets, step by step as in the RFCs.
#include <algorithm>
#include <vector>

#include "modules/policy/policer_meter.h"

namespace batchplane {
namespace {

struct Bucket {
  uint64_t tokens_bytes = 0;
  uint64_t filled_ns = 0;

  // Returns the tokens that overflowed the bucket.
  uint64_t fill(const TokenStep& step, uint64_t burst_bytes, uint64_t now_ns) {
    const uint64_t n_steps = (now_ns - filled_ns) / step.period_ns;
    filled_ns += n_steps * step.period_ns;
    return put(n_steps * step.bytes, burst_bytes);
  }
  uint64_t put(uint64_t bytes, uint64_t burst_bytes) {
    const uint64_t whole = tokens_bytes + bytes;
    tokens_bytes = std::min(whole, burst_bytes);
    return whole - tokens_bytes;
  }
};

struct Meter {
  Bucket committed;
  Bucket second;  // excess or peak
};

// RFC 2697, section 3.
Colour mark_single(const MeterProfile& profile, Meter& meter, uint64_t now_ns, uint32_t bytes,
                   Colour colour) {
  const uint64_t over =
      meter.committed.fill(profile.committed, profile.committed_burst_bytes, now_ns);
  meter.second.put(over, profile.second_burst_bytes);
  if (colour == kGreen && meter.committed.tokens_bytes >= bytes) {
    meter.committed.tokens_bytes -= bytes;
    return kGreen;
  }
  if (colour != kRed && meter.second.tokens_bytes >= bytes) {
    meter.second.tokens_bytes -= bytes;
    return kYellow;
  }
  return kRed;
}

// RFC 2698, section 3.
Colour mark_two(const MeterProfile& profile, Meter& meter, uint64_t now_ns, uint32_t bytes,
                Colour colour) {
  meter.committed.fill(profile.committed, profile.committed_burst_bytes, now_ns);
  meter.second.fill(profile.peak, profile.second_burst_bytes, now_ns);
  if (colour == kRed || meter.second.tokens_bytes < bytes) return kRed;
  meter.second.tokens_bytes -= bytes;
  if (colour == kYellow || meter.committed.tokens_bytes < bytes) return kYellow;
  meter.committed.tokens_bytes -= bytes;
  return kGreen;
}

}  // namespace

struct ColourMeters::Impl {
  std::vector<Meter> meters;
};

ColourMeters::ColourMeters(uint32_t n_meters, const MeterProfile& profile)
    : impl_(std::make_unique<Impl>()) {
  impl_->meters.assign(n_meters,
                       {{profile.committed_burst_bytes, 0}, {profile.second_burst_bytes, 0}});
}

ColourMeters::~ColourMeters() = default;

void ColourMeters::mark(const MeterProfile& profile, uint64_t now_ns, const uint32_t* meters,
                        const uint32_t* bytes, uint8_t* colours, uint32_t n) noexcept {
  for (uint32_t i = 0; i < n; ++i) {
    Meter& meter = impl_->meters[meters[i]];
    const auto before = static_cast<Colour>(colours[i]);
    colours[i] = profile.is_two_rate ? mark_two(profile, meter, now_ns, bytes[i], before)
                                     : mark_single(profile, meter, now_ns, bytes[i], before);
  }
}

}  // namespace batchplane
