// SPDX-License-Identifier: BSD-3-Clause
// messages.h - errors as lines for people and as objects for clients; time-stamped log lines.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/value.h"

namespace batchplane::app {

// An error with its file position, taken from its key or looked up by it.
struct Located {
  std::string place;  // file:line, or empty
  std::string key;
  std::string message;
  std::string fix;
};

Located locate(const ConfigError& error, const std::map<std::string, std::string>& source_map);

// `file:line: key: message (fix)`, always one line.
std::string error_line(const ConfigError& error,
                       const std::map<std::string, std::string>& source_map);
// [{"where": "key (file:line)", "message", "fix"}]
List errors_value(const std::vector<ConfigError>& errors,
                  const std::map<std::string, std::string>& source_map);

// Runs `fn` and returns whatever it throws as errors, so that nothing ends the daemon.
std::vector<ConfigError> errors_of(const std::function<void()>& fn);

// Writes a line with the time to standard error.
void log_line(const std::string& text);

}  // namespace batchplane::app
