// SPDX-License-Identifier: BSD-3-Clause
// dpi_automaton.h - searches for all literals in one pass (Aho and Corasick 1975), over several
// texts in parallel: each step waits for memory, and the steps of the other texts fill that time.
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

// A position in a text and the table entry reached there.
struct Walk {
  uint32_t n_bytes = 0;
  uint32_t entry = 0;
};

// Read-only once built.
class Automaton {
 public:
  // Throws ConfigError below `where` when the table would be larger than `max_bytes`.
  Automaton(std::vector<Literal> literals, uint64_t max_bytes, const std::string& where);

  // is_hit[i]: whether text i may contain a literal. One nocase literal makes the scan ignore case
  // for all of them, so false positives are possible.
  void scan(const Text* texts, uint32_t n, bool* is_hit) const noexcept;
  // The same, one text after the other, for comparison.
  void scan_singly(const Text* texts, uint32_t n, bool* is_hit) const noexcept;

  // Walks to the first place where a literal may end, or to the end of the text.
  [[nodiscard]] Walk walk(const Text& text) const noexcept;
  // Whether the walk is plausible for this text: one read back from a device may be anything.
  [[nodiscard]] bool can_be(const Walk& walk, const Text& text) const noexcept {
    const uint32_t row = walk.entry & kRowMask;
    return row < table_.size() && row % n_classes_ == 0 && walk.n_bytes <= text.len_bytes &&
           (is_hit(walk) ? outputs_[state_of(row)].is_any() : walk.n_bytes == text.len_bytes);
  }
  [[nodiscard]] static bool is_hit(const Walk& walk) { return (walk.entry & kHasOutput) != 0; }

  // Calls visit(literal) for each place where a literal ends, starting from `walk`.
  template <class Visit>
  void report(const Text& text, Visit visit, Walk walk = {}) const noexcept {
    for (;; walk.entry = next(walk.entry, text.data[walk.n_bytes++])) {
      if (is_hit(walk)) [[unlikely]]
        report_at(text.data + walk.n_bytes, walk.entry, visit);
      if (walk.n_bytes == text.len_bytes) return;
    }
  }

  // For a device (dpi.cl): the class of each byte, the length of the longest literal, the table.
  [[nodiscard]] std::vector<uint32_t> words() const;

  [[nodiscard]] uint32_t n_states() const { return static_cast<uint32_t>(outputs_.size()); }
  [[nodiscard]] uint64_t table_bytes() const { return table_.size() * sizeof(uint32_t); }

 private:
  static constexpr uint32_t kHasOutput = 1U << 31;
  static constexpr uint32_t kRowMask = kHasOutput - 1;
  static constexpr uint32_t kNoState = ~0U;

  // The literals that end in a state, and the next shorter state in which literals end, too.
  struct Output {
    uint32_t first = 0;
    uint32_t n = 0;
    uint32_t next = kNoState;
    [[nodiscard]] bool is_any() const { return n != 0 || next != kNoState; }
  };
  struct Trie;

  template <class Visit>
  void report_at(const uint8_t* end, uint32_t entry, Visit& visit) const noexcept {
    for (uint32_t state = state_of(entry); state != kNoState; state = outputs_[state].next) {
      const Output& output = outputs_[state];
      for (uint32_t i = 0; i < output.n; ++i) {
        const uint32_t literal = ending_[output.first + i];
        if (is_there(literals_[literal], end)) visit(literal);
      }
    }
  }
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
  std::array<uint8_t, 256> class_of_{};  // bytes that no literal distinguishes share a class
  uint32_t n_classes_ = 1;
  bool folds_case_ = false;
  std::vector<uint32_t>
      table_;  // by state and class: the row of the next state, and whether a literal ends there
  std::vector<Output> outputs_;
  std::vector<uint32_t> ending_;
};

}  // namespace batchplane::dpi
