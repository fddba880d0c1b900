// SPDX-License-Identifier: BSD-3-Clause
// dpi_automaton.h - all literals in one pass over a text (Aho and Corasick 1975), several texts side by
// side: each step waits for memory, and so the steps of others fill the time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "modules/inspect/text.h"

namespace batchplane::dpi {

struct Literal {
  std::string bytes;
  bool is_nocase = false;
};

using inspect::Text;

// Read-only once built.
class Automaton {
 public:
  // Throws ConfigError below `where` when its table would not fit `max_bytes`.
  Automaton(std::vector<Literal> literals, uint64_t max_bytes, const std::string& where);

  // is_hit[i]: whether text i may hold a literal: one that differs by case alone is a hit, too.
  void scan(const Text* texts, uint32_t n, bool* is_hit) const noexcept;
  // The same, one text after the other: for comparison.
  void scan_singly(const Text* texts, uint32_t n, bool* is_hit) const noexcept;

  // Calls visit(literal) for each place in the text where one ends.
  template <class Visit>
  void report(const Text& text, Visit visit) const noexcept {
    uint32_t entry = 0;
    for (uint32_t at = 0; at < text.len_bytes; ++at) {
      entry = next(entry, text.data[at]);
      if ((entry & kHasOutput) == 0) [[likely]]
        continue;
      for (uint32_t state = state_of(entry); state != kNoState; state = outputs_[state].next) {
        const Output& output = outputs_[state];
        for (uint32_t i = 0; i < output.n; ++i) {
          const uint32_t literal = ending_[output.first + i];
          if (is_there(literals_[literal], text.data + at + 1)) visit(literal);
        }
      }
    }
  }

  [[nodiscard]] uint32_t n_states() const { return static_cast<uint32_t>(outputs_.size()); }
  [[nodiscard]] uint64_t table_bytes() const { return table_.size() * sizeof(uint32_t); }

 private:
  static constexpr uint32_t kHasOutput = 1U << 31;
  static constexpr uint32_t kRowMask = kHasOutput - 1;
  static constexpr uint32_t kNoState = ~0U;

  // Literals that end in a state, and the next state whose literals end there, too.
  struct Output {
    uint32_t first = 0;
    uint32_t n = 0;
    uint32_t next = kNoState;
  };
  struct Trie;

  [[nodiscard]] uint32_t next(uint32_t entry, uint8_t byte) const noexcept {
    return table_[(entry & kRowMask) + class_of_[byte]];
  }
  [[nodiscard]] uint32_t state_of(uint32_t entry) const noexcept {
    return (entry & kRowMask) / n_classes_;
  }
  [[nodiscard]] static bool is_there(const Literal& literal, const uint8_t* end) noexcept;

  void choose_classes();
  void build(const Trie& trie);
  template <uint32_t kLanes>
  struct Lanes;
  template <uint32_t kLanes>
  void step(Lanes<kLanes>& lanes, uint32_t n_steps) const noexcept;
  template <uint32_t kLanes>
  void run(Lanes<kLanes>& lanes, uint32_t least_busy, const Text* texts, uint32_t n, uint32_t& at,
           bool* is_hit) const noexcept;

  std::vector<Literal> literals_;
  std::array<uint8_t, 256> class_of_{};  // bytes that no literal tells apart are one
  uint32_t n_classes_ = 1;
  bool folds_case_ = false;
  std::vector<uint32_t> table_;  // by state and class: the next state's row, and whether any ends
  std::vector<Output> outputs_;
  std::vector<uint32_t> ending_;
};

}  // namespace batchplane::dpi
