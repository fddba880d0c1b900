// SPDX-License-Identifier: BSD-3-Clause
// maglev.cc - fills the table: backends take turns, each taking its most preferred free slot.
#include "modules/balance/maglev.h"

#include <algorithm>

namespace batchplane {
namespace {

constexpr uint16_t kFree = 0xffff;

// FNV-1a with a final mix, so that names that differ in the last letter hash independently.
uint64_t hash_name(const std::string& name, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325ULL ^ seed;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93ULL;
  return hash ^ hash >> 32;
}

// Walks the slots in the preference order of a backend. The number of slots is prime, so any step
// visits each slot once.
struct Walk {
  uint32_t at;
  uint32_t step;
  uint32_t weight;
  uint32_t credit;
  uint16_t backend;

  void take_free(std::vector<uint16_t>& slots) {
    const auto n_slots = static_cast<uint32_t>(slots.size());
    while (slots[at] != kFree) at = at + step < n_slots ? at + step : at + step - n_slots;
    slots[at] = backend;
  }
};

std::vector<Walk> walks_of(const std::vector<MaglevBackend>& backends, uint32_t n_slots) {
  std::vector<Walk> walks;
  walks.reserve(backends.size());
  for (size_t i = 0; i < backends.size(); ++i) {
    const std::string& name = backends[i].name;
    walks.push_back({.at = static_cast<uint32_t>(hash_name(name, 1) % n_slots),
                     .step = static_cast<uint32_t>(hash_name(name, 2) % (n_slots - 1)) + 1,
                     .weight = backends[i].weight,
                     .credit = 0,
                     .backend = static_cast<uint16_t>(i)});
  }
  std::ranges::sort(walks, {}, [&](const Walk& walk) -> const std::string& {
    return backends[walk.backend].name;
  });
  return walks;
}

}  // namespace

bool is_prime(uint32_t n) {
  if (n < 2) return false;
  for (uint32_t d = 2; d <= n / d; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

std::vector<uint16_t> maglev_slots(const std::vector<MaglevBackend>& backends, uint32_t n_slots) {
  if (backends.empty()) return {};
  std::vector<Walk> walks = walks_of(backends, n_slots);
  const uint32_t max_weight = std::ranges::max(backends, {}, &MaglevBackend::weight).weight;
  std::vector<uint16_t> slots(n_slots, kFree);
  // The heaviest backend takes a slot every round, the others one in max_weight / weight rounds.
  for (uint32_t n_taken = 0; n_taken < n_slots;) {
    for (Walk& walk : walks) {
      walk.credit += walk.weight;
      if (walk.credit < max_weight) continue;
      walk.credit -= max_weight;
      walk.take_free(slots);
      if (++n_taken == n_slots) break;
    }
  }
  return slots;
}

}  // namespace batchplane
