// SPDX-License-Identifier: BSD-3-Clause
// maglev.h - the consistent-hashing table of Maglev (Eisenbud et al., NSDI 2016, section 3.4): even
// shares, and few slots move when a backend is added or removed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace batchplane {

struct MaglevBackend {
  std::string name;     // the slot preferences depend on it alone
  uint32_t weight = 1;  // its share of the slots is weight / sum of weights; at least 1
};

// slots[i] = index into `backends` of the backend that owns slot i; empty if there are no backends.
// The order of `backends` does not change which name gets a slot. n_slots: a prime below 2^31, at
// least the number of backends; at most 65535 backends.
std::vector<uint16_t> maglev_slots(const std::vector<MaglevBackend>& backends, uint32_t n_slots);

[[nodiscard]] bool is_prime(uint32_t n);

}  // namespace batchplane
