// SPDX-License-Identifier: BSD-3-Clause
// text_file.h - opens text files that an operator names. Opening a device, pipe or folder would succeed too,
// but reading it might never end, block for ever, or give nothing.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"

namespace batchplane {

// The stream is bad when there is no such regular file.
inline std::ifstream try_open_text_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::ifstream(std::string());
  return std::ifstream(path);
}

// Throws ConfigError.
inline std::ifstream open_text_file(const std::string& path, const std::string& where) {
  std::ifstream in = try_open_text_file(path);
  if (in) return in;
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    throw ConfigError("'" + path + "' is no regular file, or cannot be read", where,
                      "name a file, and check its permissions");
  }
  throw ConfigError("cannot read '" + path + "'", where, "check the path and its permissions");
}

// The words of a line, without the comment that a # begins.
inline std::vector<std::string> words_of_line(const std::string& line) {
  std::istringstream in(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace batchplane
