// SPDX-License-Identifier: BSD-3-Clause
#include "modules/session/session_five_qi.h"

#include <algorithm>
#include <iterator>

namespace batchplane::session {
namespace {

constexpr FiveQi kFiveQis[] = {
    {1, 20, true},  {2, 40, true},   {3, 30, true},   {4, 50, true},  {5, 10, false},
    {6, 60, false}, {7, 70, false},  {8, 80, false},  {9, 90, false}, {10, 90, false},
    {65, 7, true},  {66, 20, true},  {67, 15, true},  {69, 5, false}, {70, 55, false},
    {71, 56, true}, {72, 56, true},  {73, 56, true},  {74, 56, true}, {75, 25, true},
    {76, 56, true}, {79, 65, false}, {80, 68, false}, {82, 19, true}, {83, 22, true},
    {84, 24, true}, {85, 21, true},  {86, 18, true},  {87, 25, true}, {88, 25, true},
    {89, 25, true}, {90, 25, true},
};

// The highest level of each priority from 7 down to 1: signalling and mission-critical voice;
// voice; delay-critical; video and games in real time; buffered and live streams; what a user
// waits for; the rest. The default bearer's level is 0, as without a 5QI.
constexpr uint8_t kHighestLevels[] = {10, 20, 25, 40, 56, 68, 80};

}  // namespace

std::optional<FiveQi> standard_five_qi(int64_t value) {
  const auto* const found = std::ranges::find(kFiveQis, value, &FiveQi::value);
  return found == std::end(kFiveQis) ? std::nullopt : std::optional(*found);
}

std::string standard_five_qis() {
  std::string text;
  for (size_t i = 0; i < std::size(kFiveQis);) {
    size_t last = i;
    while (last + 1 < std::size(kFiveQis) && kFiveQis[last + 1].value == kFiveQis[last].value + 1) {
      ++last;
    }
    text += (text.empty() ? "" : ", ") + std::to_string(kFiveQis[i].value);
    if (last != i) text += "-" + std::to_string(kFiveQis[last].value);
    i = last + 1;
  }
  return text;
}

uint8_t priority_of_level(uint8_t level) {
  const auto n = std::ranges::count_if(kHighestLevels, [&](uint8_t most) { return level > most; });
  return static_cast<uint8_t>(std::size(kHighestLevels) - static_cast<size_t>(n));
}

}  // namespace batchplane::session
