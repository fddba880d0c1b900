// SPDX-License-Identifier: BSD-3-Clause
// icmp_rate.h - common to ICMP errors of both versions: the error for each drop reason, and the
// rate limit.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "core/module/drop_reason.h"
#include "core/module/module.h"

namespace batchplane::icmp {

struct ErrorKind {
  uint8_t type = 0;  // 0 = none
  uint8_t code = 0;
};
struct NamedError {
  const char* reason;
  ErrorKind kind;
};

// Indexed by drop reason.
using ErrorKinds = std::array<ErrorKind, kMaxDropReasons>;
inline ErrorKinds kinds_of(std::span<const NamedError> errors) {
  ErrorKinds kinds{};
  const auto& reasons = drop_reasons();
  for (size_t i = 0; i < reasons.size(); ++i) {
    for (const NamedError& error : errors) {
      if (reasons[i].name == error.reason) kinds[i] = error.kind;
    }
  }
  return kinds;
}

// A token bucket in nanoseconds: each error costs 1 / errors_per_s.
class ErrorBudget {
 public:
  explicit ErrorBudget(const Args& args)
      : ns_per_error_(1'000'000'000 / args.u64("errors_per_s")),
        bucket_ns_(ns_per_error_ * args.u64("burst")),
        tokens_ns_(bucket_ns_) {}

  void refill(uint64_t now_ns) noexcept {
    if (now_ns > last_ns_) tokens_ns_ = std::min(bucket_ns_, tokens_ns_ + (now_ns - last_ns_));
    last_ns_ = now_ns;
  }
  // True if one more error may be sent; charges it.
  [[nodiscard]] bool take() noexcept {
    if (tokens_ns_ < ns_per_error_) return false;
    tokens_ns_ -= ns_per_error_;
    return true;
  }

 private:
  uint64_t ns_per_error_;
  uint64_t bucket_ns_;
  uint64_t tokens_ns_;
  uint64_t last_ns_ = 0;
};

inline ParamSpec errors_per_s_spec() {
  return {.name = "errors_per_s",
          .type = ParamType::kInt,
          .unit = "1/s",
          .default_value = 1000,
          .help = "errors sent in the long run",
          .min = 1,
          .max = 10'000'000};
}
inline ParamSpec burst_spec() {
  return {.name = "burst",
          .type = ParamType::kInt,
          .unit = "pkts",
          .default_value = 50,
          .help = "errors sent at once after a pause",
          .min = 1,
          .max = 1'000'000};
}

}  // namespace batchplane::icmp
