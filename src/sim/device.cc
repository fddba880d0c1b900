// SPDX-License-Identifier: BSD-3-Clause
#include "sim/device.h"

#include <algorithm>

namespace batchplane::sim {
namespace {

double param(const DeviceSpec& spec, const std::string& name, double fallback) {
  const auto it = spec.params.find(name);
  return it == spec.params.end() || !it->second.is_number() ? fallback : it->second.as_double();
}

// At least one: without threads the engine's worker would compute, but here the device's law
// applies all the same.
size_t threads_of(const DeviceSpec& spec) {
  return spec.kind == "cores" ? static_cast<size_t>(std::max(1.0, param(spec, "threads", 1))) : 1;
}

}  // namespace

Device::Device(const DeviceSpec& spec) : spec_(spec), free_ns_(threads_of(spec), 0) {}

uint64_t Device::submit(uint32_t thread, uint32_t n_pkts, uint64_t takes_ns, uint64_t busy_ns,
                        uint64_t now_ns) {
  const uint64_t begins_ns = std::max(free_ns_[thread], now_ns);
  free_ns_[thread] = begins_ns + busy_ns;
  ++jobs_;
  pkts_ += n_pkts;
  busy_ns_ += busy_ns;
  return begins_ns + takes_ns;
}

Dict Device::show(uint64_t now_ns) const {
  // Work under way ends later.
  double busy_ns = static_cast<double>(busy_ns_);
  for (const uint64_t free_ns : free_ns_)
    busy_ns -= static_cast<double>(std::max(free_ns, now_ns) - now_ns);
  const double threads = static_cast<double>(free_ns_.size());
  const double share =
      now_ns == 0 ? 0 : std::clamp(busy_ns / static_cast<double>(now_ns) / threads, 0.0, 1.0);
  const double idle_w = param(spec_, "idle_w", 0);
  return Dict{{"name", spec_.name},
              {"kind", spec_.kind},
              {"is_up", true},
              {"fault", ""},
              {"runs_on", ""},
              {"threads", free_ns_.size()},
              {"late_jobs", 0},
              {"jobs", jobs_},
              {"pkts", pkts_},
              {"busy_share", share},
              {"modelled_w", idle_w + (param(spec_, "active_w", 0) - idle_w) * share}};
}

}  // namespace batchplane::sim
