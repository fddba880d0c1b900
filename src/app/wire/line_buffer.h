// SPDX-License-Identifier: BSD-3-Clause
// line_buffer.h - splits a byte stream into lines of limited length.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace batchplane::app {

class LineBuffer {
 public:
  explicit LineBuffer(size_t max_bytes) : max_bytes_(max_bytes) {}

  void append(std::string_view bytes) { bytes_ += bytes; }

  // The next complete line without its newline; empty lines are skipped.
  std::optional<std::string> take() {
    while (true) {
      const size_t end = bytes_.find('\n', scanned_);
      if (end == std::string::npos) {
        scanned_ = bytes_.size();
        return std::nullopt;
      }
      std::string line = bytes_.substr(0, end);
      bytes_.erase(0, end + 1);
      scanned_ = 0;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (!line.empty()) return line;
    }
  }
  // The unfinished line is already too long.
  [[nodiscard]] bool is_too_long() const {
    return bytes_.size() > max_bytes_ && bytes_.find('\n') > max_bytes_;
  }
  [[nodiscard]] bool has_line() const { return bytes_.find('\n') != std::string::npos; }
  [[nodiscard]] size_t size_bytes() const { return bytes_.size(); }

 private:
  size_t max_bytes_;
  std::string bytes_;
  size_t scanned_ = 0;
};

}  // namespace batchplane::app
