// SPDX-License-Identifier: BSD-3-Clause
// dpi_ruleset.h - compiled rules: the patterns of each, and the verdict on a packet.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/module/kernel.h"
#include "modules/common/tally.h"
#include "modules/inspect/dpi_hyperscan.h"

namespace batchplane::dpi {

enum class EngineKind : uint8_t { kAhoCorasick, kHyperscan };

// Hits of each rule, by rule number; kept across edits.
using HitCounts = std::map<uint32_t, std::shared_ptr<Tally>>;

// The verdict of all rules on one packet.
struct Verdict {
  Action action = Action::kAlert;
  bool is_match = false;
  bool has_mark = false;
  uint32_t mark = 0;
};

// Owner: one worker at a time; built on the control thread.
class Ruleset final : public KernelTable, private PatternSink {
 public:
  // Throws ConfigError when the engine does not support a rule. Adds an entry to `hits` for each
  // rule that has none.
  Ruleset(const std::map<uint32_t, DpiRule>& rules, EngineKind engine, HitCounts& hits,
          const std::string& where);

  // Sets verdicts[i] for text i; protos[i] is the packet's transport protocol.
  void judge(const Text* texts, const uint8_t* protos, uint32_t n, Verdict* verdicts) noexcept;

  // The same with walks computed by a device, which are checked.
  void judge_from(const Walk* walks, const Text* texts, const uint8_t* protos, uint32_t n,
                  Verdict* verdicts) noexcept;
  [[nodiscard]] Walk walk(const Text& text) const noexcept { return automaton_->walk(text); }
  [[nodiscard]] std::vector<uint32_t> words() const override { return automaton_->words(); }

  // Uses these counters for the rules they contain. Call before a worker uses this rule set.
  void count_in(const HitCounts& hits);

  [[nodiscard]] uint32_t n_rules() const { return static_cast<uint32_t>(rules_.size()); }
  [[nodiscard]] uint32_t n_patterns() const { return static_cast<uint32_t>(seen_in_.size()); }
  [[nodiscard]] uint64_t table_bytes() const;

 private:
  struct Rule {
    uint32_t id = 0;
    uint32_t n_patterns = 0;
    Action action = Action::kAlert;
    uint8_t proto = 0;
    uint32_t mark = 0;
    std::shared_ptr<Tally> hits;
    // Number of the last packet that contained any of the rule's patterns; n_seen of them so far.
    uint64_t packet = 0;
    uint32_t n_seen = 0;
  };

  void begin(uint8_t proto, Verdict& verdict) noexcept;
  void report(const Text& text, const Walk& walk) noexcept;
  void found(uint32_t pattern) noexcept override;

  EngineKind engine_;
  std::unique_ptr<Automaton> automaton_;
  std::unique_ptr<Hyperscan> hyperscan_;
  std::vector<Rule> rules_;
  std::vector<uint32_t> first_rule_;  // by pattern: an index into rules_of_pattern_
  std::vector<uint32_t> rules_of_pattern_;
  std::vector<uint64_t> seen_in_;  // by pattern: number of the last packet that contained it
  uint64_t packet_ = 0;
  uint8_t proto_ = 0;
  Verdict* verdict_ = nullptr;
};

}  // namespace batchplane::dpi
