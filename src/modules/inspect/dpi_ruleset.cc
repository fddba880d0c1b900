// SPDX-License-Identifier: BSD-3-Clause
// dpi_ruleset.cc - shares one pattern between all rules that use it, and maps matched patterns back
// to rules.
#include "modules/inspect/dpi_ruleset.h"

#include <tuple>

#include "base/error.h"
#include "exec/batch.h"

namespace batchplane::dpi {
namespace {

constexpr uint64_t kMaxTableBytes = 1ULL << 30;

struct PatternOrder {
  bool operator()(const Pattern& a, const Pattern& b) const {
    return std::tie(a.bytes, a.is_nocase, a.is_regex, a.regex_flags) <
           std::tie(b.bytes, b.is_nocase, b.is_regex, b.regex_flags);
  }
};

}  // namespace

Ruleset::Ruleset(const std::map<uint32_t, DpiRule>& rules, EngineKind engine, HitCounts& hits,
                 const std::string& where)
    : engine_(engine) {
  std::map<Pattern, std::vector<uint32_t>, PatternOrder> rules_by_pattern;
  for (const auto& [id, rule] : rules) {
    const auto index = static_cast<uint32_t>(rules_.size());
    auto& count = hits[id];
    if (count == nullptr) count = std::make_shared<Tally>();
    rules_.push_back(
        {.id = id, .action = rule.action, .proto = rule.proto, .mark = rule.mark, .hits = count});
    for (const Pattern& pattern : rule.patterns) {
      if (pattern.is_regex && engine == EngineKind::kAhoCorasick) {
        throw ConfigError("rule " + std::to_string(id) + " has an expression", where,
                          "set engine: hyperscan; aho_corasick finds literals alone");
      }
      std::vector<uint32_t>& users = rules_by_pattern[pattern];
      if (!users.empty() && users.back() == index) continue;  // the rule repeats the pattern
      users.push_back(index);
      ++rules_.back().n_patterns;
    }
  }
  std::vector<Pattern> patterns;
  for (const auto& [pattern, users] : rules_by_pattern) {
    patterns.push_back(pattern);
    first_rule_.push_back(static_cast<uint32_t>(rules_of_pattern_.size()));
    rules_of_pattern_.insert(rules_of_pattern_.end(), users.begin(), users.end());
  }
  first_rule_.push_back(static_cast<uint32_t>(rules_of_pattern_.size()));
  seen_in_.assign(patterns.size(), 0);
  if (engine == EngineKind::kHyperscan) {
    hyperscan_ = std::make_unique<Hyperscan>(patterns, where);
    return;
  }
  std::vector<Literal> literals;
  for (Pattern& pattern : patterns) literals.push_back({pattern.bytes, pattern.is_nocase});
  automaton_ = std::make_unique<Automaton>(std::move(literals), kMaxTableBytes, where);
}

void Ruleset::count_in(const HitCounts& hits) {
  for (Rule& rule : rules_) {
    const auto found = hits.find(rule.id);
    if (found != hits.end()) rule.hits = found->second;
  }
}

void Ruleset::judge(const Text* texts, const uint8_t* protos, uint32_t n,
                    Verdict* verdicts) noexcept {
  bool is_hit[exec::kMaxBatchPkts] = {};
  if (engine_ == EngineKind::kAhoCorasick) automaton_->scan(texts, n, is_hit);
  for (uint32_t i = 0; i < n; ++i) {
    verdicts[i] = {};
    if (engine_ == EngineKind::kAhoCorasick && !is_hit[i]) [[likely]]
      continue;
    begin(protos[i], verdicts[i]);
    if (engine_ == EngineKind::kAhoCorasick) {
      report(texts[i], {});
    } else {
      hyperscan_->scan(texts[i], *this);
    }
  }
}

void Ruleset::judge_from(const Walk* walks, const Text* texts, const uint8_t* protos, uint32_t n,
                         Verdict* verdicts) noexcept {
  for (uint32_t i = 0; i < n; ++i) {
    verdicts[i] = {};
    const bool is_possible = automaton_->can_be(walks[i], texts[i]);
    if (is_possible && !Automaton::is_hit(walks[i])) [[likely]]
      continue;
    begin(protos[i], verdicts[i]);
    report(texts[i], is_possible ? walks[i] : Walk{});
  }
}

void Ruleset::begin(uint8_t proto, Verdict& verdict) noexcept {
  ++packet_;
  proto_ = proto;
  verdict_ = &verdict;
}

void Ruleset::report(const Text& text, const Walk& walk) noexcept {
  automaton_->report(
      text, [this](uint32_t pattern) { found(pattern); }, walk);
}

void Ruleset::found(uint32_t pattern) noexcept {
  if (seen_in_[pattern] == packet_) return;
  seen_in_[pattern] = packet_;
  for (uint32_t at = first_rule_[pattern]; at < first_rule_[pattern + 1]; ++at) {
    Rule& rule = rules_[rules_of_pattern_[at]];
    if (rule.packet != packet_) rule.n_seen = 0;
    rule.packet = packet_;
    if (++rule.n_seen != rule.n_patterns) continue;
    if (rule.proto != 0 && rule.proto != proto_) continue;
    rule.hits->add(1);
    Verdict& verdict = *verdict_;
    if (!verdict.is_match || rule.action > verdict.action) verdict.action = rule.action;
    verdict.is_match = true;
    if (rule.action != Action::kMark || verdict.has_mark) continue;
    verdict.has_mark = true;
    verdict.mark = rule.mark;
  }
}

uint64_t Ruleset::table_bytes() const {
  return engine_ == EngineKind::kAhoCorasick ? automaton_->table_bytes()
                                             : hyperscan_->table_bytes();
}

}  // namespace batchplane::dpi
