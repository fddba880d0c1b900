// SPDX-License-Identifier: BSD-3-Clause
// report.h - command line, table and JSON of the benchmarks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/trials.h"

namespace bench {

struct Options {
  uint32_t trials = 40;
  uint32_t batches = 10'000;  // per trial and contender
  int core = 1;
  std::string json_path;        // empty: no file
  std::string cost_table_path;  // bench_modules only; empty: no file
  std::string only;             // part of a case's name, or empty
};

// --trials N --batches N --core N --json FILE --cost-table FILE --only TEXT over `defaults`; ends
// the process with exit code 2 on anything else.
Options parse_options(int argc, char** argv, Options defaults = {});

// Collects rows, prints them as they come, writes the JSON at the end.
class Report {
 public:
  Report(const std::string& name, const Options& options);
  ~Report();
  // One group of contenders: ns per packet (10th percentile, median) of each, and the first one's
  // ratio to every other.
  void rows(const std::string& label, const std::vector<Result>& results);
  // One figure, with a verdict when there is something to keep.
  void figure(const std::string& label, const std::string& unit, const Interval& value,
              std::optional<Target> target = std::nullopt);
  // Words below the figures: what a reader must know about them.
  void note(const std::string& text);
  // Adds any JSON text under a key.
  void attach(const std::string& key, const std::string& json_text);
  [[nodiscard]] bool wants(const std::string& label) const;
  // Returns the exit code.
  int finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bench
