// SPDX-License-Identifier: BSD-3-Clause
// dpi_hyperscan.h - matches literals and expressions with the Hyperscan library.
#pragma once

#include <memory>
#include <vector>

#include "modules/inspect/dpi_automaton.h"
#include "modules/inspect/dpi_rule.h"

namespace batchplane::dpi {

// Receives each pattern that ends somewhere in a text.
class PatternSink {
 public:
  virtual void found(uint32_t pattern) noexcept = 0;

 protected:
  ~PatternSink() = default;
};

// Owner: one worker at a time, since scans need scratch memory.
class Hyperscan {
 public:
  // Throws ConfigError that names the pattern Hyperscan cannot compile.
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
