// SPDX-License-Identifier: BSD-3-Clause
#include "base/nearest_word.h"

#include <algorithm>
#include <cstdint>

namespace batchplane {
namespace {

uint32_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<uint32_t> row(b.size() + 1);
  for (uint32_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (uint32_t i = 1; i <= a.size(); ++i) {
    uint32_t diagonal = row[0];
    row[0] = i;
    for (uint32_t j = 1; j <= b.size(); ++j) {
      const uint32_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_word(const std::string& word, const std::vector<std::string>& allowed) {
  std::string best;
  uint32_t best_distance = static_cast<uint32_t>(word.size() / 2) + 1;
  for (const std::string& candidate : allowed) {
    const uint32_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace batchplane
