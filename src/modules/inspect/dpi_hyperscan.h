// SPDX-License-Identifier: BSD-3-Clause
// dpi_hyperscan.h - literals and expressions by the library Hyperscan.
#pragma once

#include <memory>
#include <vector>

#include "modules/inspect/dpi_automaton.h"
#include "modules/inspect/dpi_rule.h"

namespace batchplane::dpi {

// Told the pattern that ends somewhere in a text.
class PatternSink {
 public:
  virtual void found(uint32_t pattern) noexcept = 0;

 protected:
  ~PatternSink() = default;
};

// Owner: one worker at a time, since a scan needs memory of its own.
class Hyperscan {
 public:
  // Throws ConfigError with the pattern that the library cannot do.
  Hyperscan(const std::vector<Pattern>& patterns, const std::string& where);
  ~Hyperscan();
  Hyperscan(const Hyperscan&) = delete;
  Hyperscan& operator=(const Hyperscan&) = delete;

  void scan(const Text& text, PatternSink& sink) noexcept;
  [[nodiscard]] uint64_t table_bytes() const;

 private:
  struct Database;
  std::unique_ptr<Database> database_;
};

}  // namespace batchplane::dpi
