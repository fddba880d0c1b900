// SPDX-License-Identifier: BSD-3-Clause
// nearest_word.h - what somebody who mistyped a name probably meant.
#pragma once

#include <string>
#include <vector>

namespace batchplane {

// The allowed word nearest to `word`, for "did you mean"; empty when none is near.
[[nodiscard]] std::string nearest_word(const std::string& word,
                                       const std::vector<std::string>& allowed);

// How to mend it: "did you mean 'x'?", else `otherwise`, else the allowed words where they are few.
[[nodiscard]] std::string did_you_mean(const std::string& word, std::vector<std::string> allowed,
                                       const std::string& otherwise = "");

}  // namespace batchplane
