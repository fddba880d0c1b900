// SPDX-License-Identifier: BSD-3-Clause
// policer_dpdk.cc - three-colour markers with rte_meter.
//
// rte_meter's own set-up counts in TSC cycles. Profiles and buckets are filled in here instead,
// since the data path's clock is in ns.
#include <rte_meter.h>

#include <vector>

#include "modules/policy/policer_meter.h"

namespace batchplane {
namespace {

static_assert(int{kGreen} == int{RTE_COLOR_GREEN} && int{kYellow} == int{RTE_COLOR_YELLOW} &&
              int{kRed} == int{RTE_COLOR_RED});

constexpr uint32_t kFewMeters = 512;  // few enough to stay in the L1 cache: no prefetch

}  // namespace

struct ColourMeters::Impl {
  std::vector<rte_meter_srtcm> single;
  std::vector<rte_meter_trtcm> two;
};

ColourMeters::ColourMeters(uint32_t n_meters, const MeterProfile& profile)
    : impl_(std::make_unique<Impl>()) {
  const uint64_t committed = profile.committed_burst_bytes;
  const uint64_t second = profile.second_burst_bytes;
  if (profile.is_two_rate) {
    impl_->two.assign(n_meters, {.time_tc = 0, .time_tp = 0, .tc = committed, .tp = second});
  } else {
    impl_->single.assign(n_meters, {.time = 0, .tc = committed, .te = second});
  }
}

ColourMeters::~ColourMeters() = default;

void ColourMeters::mark(const MeterProfile& profile, uint64_t now_ns, const uint32_t* meters,
                        const uint32_t* bytes, uint8_t* colours, uint32_t n) noexcept {
  if (profile.is_two_rate) {
    rte_meter_trtcm* const table = impl_->two.data();
    rte_meter_trtcm_profile p{.cbs = profile.committed_burst_bytes,
                              .pbs = profile.second_burst_bytes,
                              .cir_period = profile.committed.period_ns,
                              .cir_bytes_per_period = profile.committed.bytes,
                              .pir_period = profile.peak.period_ns,
                              .pir_bytes_per_period = profile.peak.bytes};
    if (impl_->two.size() > kFewMeters) {
      for (uint32_t i = 0; i < n; ++i) __builtin_prefetch(&table[meters[i]], 1);
    }
    for (uint32_t i = 0; i < n; ++i) {
      colours[i] = static_cast<uint8_t>(rte_meter_trtcm_color_aware_check(
          &table[meters[i]], &p, now_ns, bytes[i], static_cast<rte_color>(colours[i])));
    }
    return;
  }
  rte_meter_srtcm* const table = impl_->single.data();
  rte_meter_srtcm_profile p{.cbs = profile.committed_burst_bytes,
                            .ebs = profile.second_burst_bytes,
                            .cir_period = profile.committed.period_ns,
                            .cir_bytes_per_period = profile.committed.bytes};
  if (impl_->single.size() > kFewMeters) {
    for (uint32_t i = 0; i < n; ++i) __builtin_prefetch(&table[meters[i]], 1);
  }
  for (uint32_t i = 0; i < n; ++i) {
    colours[i] = static_cast<uint8_t>(rte_meter_srtcm_color_aware_check(
        &table[meters[i]], &p, now_ns, bytes[i], static_cast<rte_color>(colours[i])));
  }
}

}  // namespace batchplane
