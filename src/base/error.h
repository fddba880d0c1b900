// SPDX-License-Identifier: BSD-3-Clause
// error.h - the only exception type of the control side; the data path never throws.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace batchplane {

// A mistake in a configuration or request that the user can fix. `where` names the place (module, key), `fix`
// says how to correct it; either may be empty.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(const std::string& message, std::string where = "", std::string fix = "")
      : std::runtime_error(message), where_(std::move(where)), fix_(std::move(fix)) {}

  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] const std::string& fix() const { return fix_; }

  // The message on one line: "where: message (fix)".
  [[nodiscard]] std::string line() const {
    std::string text = where_.empty() ? std::string(what()) : where_ + ": " + what();
    if (!fix_.empty()) text += " (" + fix_ + ")";
    return text;
  }

 private:
  std::string where_;
  std::string fix_;
};

}  // namespace batchplane
