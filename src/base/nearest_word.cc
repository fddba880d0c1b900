// SPDX-License-Identifier: BSD-3-Clause
#include "base/nearest_word.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace batchplane {
namespace {

constexpr size_t kFewWords = 12;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Number of single-letter edits from a to b; swapping two neighbours counts as one.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> current{i};
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      size_t cost = std::min({row[j] + 1, current[j - 1] + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost = std::min(cost, before[j - 2] + 1);
      }
      current.push_back(cost);
    }
    before = std::move(row);
    row = std::move(current);
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_word(const std::string& word, const std::vector<std::string>& allowed) {
  std::string best;
  // A truncated word, or one with a suffix, counts as one edit away; among those the closer one wins.
  std::pair<size_t, size_t> best_distance{word.size() / 3 + 2, 0};
  for (const std::string& candidate : allowed) {
    const size_t edits = edit_distance(lower(word), lower(candidate));
    const bool is_cut = candidate.starts_with(word) || word.starts_with(candidate);
    const size_t near = word.size() >= 3 && is_cut ? std::min<size_t>(edits, 1) : edits;
    if (std::pair(near, edits) < best_distance) {
      best = candidate;
      best_distance = {near, edits};
    }
  }
  return best;
}

std::string did_you_mean(const std::string& word, std::vector<std::string> allowed,
                         const std::string& otherwise) {
  std::ranges::sort(allowed);
  const std::string near = nearest_word(word, allowed);
  if (!near.empty()) return "did you mean '" + near + "'?";
  if (!otherwise.empty() || allowed.empty() || allowed.size() > kFewWords) return otherwise;
  std::string list;
  for (const std::string& each : allowed) list += (list.empty() ? "" : ", ") + each;
  return "one of: " + list;
}

}  // namespace batchplane
