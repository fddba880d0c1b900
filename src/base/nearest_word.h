// SPDX-License-Identifier: BSD-3-Clause
// nearest_word.h - suggests the name that a user probably meant by a mistyped one.
#pragma once

#include <string>
#include <vector>

namespace batchplane {

// The allowed word closest to `word`, for "did you mean"; empty when none is close.
[[nodiscard]] std::string nearest_word(const std::string& word,
                                       const std::vector<std::string>& allowed);

// Advice for the user: "did you mean 'x'?", else `otherwise`, else the list of allowed words if it is short.
[[nodiscard]] std::string did_you_mean(const std::string& word, std::vector<std::string> allowed,
                                       const std::string& otherwise = "");

}  // namespace batchplane
