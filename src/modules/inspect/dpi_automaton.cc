// SPDX-License-Identifier: BSD-3-Clause
// dpi_automaton.cc - builds the table breadth first, so that the states near the root are close
// together in memory, and scans texts.
#include "modules/inspect/dpi_automaton.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace batchplane::dpi {
namespace {

constexpr uint32_t kMostSteps = 256;          // bytes per lane before free lanes are refilled
constexpr uint8_t kNothing[kMostSteps] = {};  // read by lanes that have no text

uint8_t lower(uint8_t c) { return c >= 'A' && c <= 'Z' ? static_cast<uint8_t>(c + 32) : c; }

}  // namespace

// A trie of the literals' byte classes: common prefixes share nodes.
struct Automaton::Trie {
  struct Node {
    uint32_t first_child = kNoState;
    uint32_t sibling = kNoState;
    uint32_t state = 0;  // set by build()
    uint8_t byte_class = 0;
    std::vector<uint32_t> ending = {};
  };
  std::vector<Node> nodes{1};

  [[nodiscard]] uint32_t child(uint32_t node, uint8_t byte_class) {
    for (uint32_t c = nodes[node].first_child; c != kNoState; c = nodes[c].sibling) {
      if (nodes[c].byte_class == byte_class) return c;
    }
    const auto made = static_cast<uint32_t>(nodes.size());
    nodes.push_back({.sibling = nodes[node].first_child, .byte_class = byte_class});
    nodes[node].first_child = made;
    return made;
  }
};

Automaton::Automaton(std::vector<Literal> literals, uint64_t max_bytes, const std::string& where)
    : literals_(std::move(literals)) {
  choose_classes();
  Trie trie;
  for (uint32_t i = 0; i < literals_.size(); ++i) {
    uint32_t node = 0;
    for (const char c : literals_[i].bytes)
      node = trie.child(node, class_of_[static_cast<uint8_t>(c)]);
    trie.nodes[node].ending.push_back(i);
  }
  const uint64_t n_entries = trie.nodes.size() * uint64_t{n_classes_};
  if (n_entries * sizeof(uint32_t) > max_bytes || n_entries >= kHasOutput) {
    throw ConfigError("the rules would take " + std::to_string((n_entries * 4) >> 20) + " MB",
                      where,
                      "at most " + std::to_string(max_bytes >> 20) +
                          " MB fit; take rules out, or set engine: hyperscan");
  }
  build(trie);
}

void Automaton::choose_classes() {
  folds_case_ = std::ranges::any_of(literals_, &Literal::is_nocase);
  std::array<bool, 256> is_used{};
  const auto folded = [&](uint32_t byte) {
    const auto c = static_cast<uint8_t>(byte);
    return folds_case_ ? lower(c) : c;
  };
  for (const Literal& literal : literals_) {
    for (const char c : literal.bytes) is_used[folded(static_cast<uint8_t>(c))] = true;
  }
  std::array<uint8_t, 256> number{};
  const uint32_t n_used = static_cast<uint32_t>(std::ranges::count(is_used, true));
  // Class 0 is for bytes that are in no literal, if there are any.
  n_classes_ = n_used == 256 ? 0 : 1;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (is_used[byte]) number[byte] = static_cast<uint8_t>(n_classes_++);
  }
  for (uint32_t byte = 0; byte < 256; ++byte) class_of_[byte] = number[folded(byte)];
}

void Automaton::build(const Trie& const_trie) {
  Trie trie = const_trie;
  std::vector<uint32_t> order{0};  // node numbers, indexed by state
  std::vector<uint32_t> suffix(trie.nodes.size(), 0);
  table_.assign(trie.nodes.size() * n_classes_, 0);
  outputs_.assign(trie.nodes.size(), {});
  const auto entry_of = [&](uint32_t state) {
    return state * n_classes_ | (outputs_[state].is_any() ? kHasOutput : 0);
  };
  for (uint32_t state = 0; state < order.size(); ++state) {
    uint32_t* const row = &table_[size_t{state} * n_classes_];
    const uint32_t* const suffix_row = &table_[size_t{suffix[state]} * n_classes_];
    if (state != 0) std::copy_n(suffix_row, n_classes_, row);
    for (uint32_t node = trie.nodes[order[state]].first_child; node != kNoState;
         node = trie.nodes[node].sibling) {
      const auto child = static_cast<uint32_t>(order.size());
      order.push_back(node);
      const uint8_t byte_class = trie.nodes[node].byte_class;
      suffix[child] = state == 0 ? 0 : state_of(suffix_row[byte_class]);
      const std::vector<uint32_t>& own = trie.nodes[node].ending;
      const Output& behind = outputs_[suffix[child]];
      outputs_[child] = {.first = static_cast<uint32_t>(ending_.size()),
                         .n = static_cast<uint32_t>(own.size()),
                         .next = behind.n != 0 ? suffix[child] : behind.next};
      ending_.insert(ending_.end(), own.begin(), own.end());
      row[byte_class] = entry_of(child);
    }
  }
}

bool Automaton::is_there(const Literal& literal, const uint8_t* end) noexcept {
  const size_t n = literal.bytes.size();
  const uint8_t* const begin = end - n;
  if (!literal.is_nocase) return std::memcmp(begin, literal.bytes.data(), n) == 0;
  for (size_t i = 0; i < n; ++i) {
    if (lower(begin[i]) != lower(static_cast<uint8_t>(literal.bytes[i]))) return false;
  }
  return true;
}

template <uint32_t kLanes>
struct Automaton::Lanes {
  const uint8_t* at[kLanes] = {};
  uint32_t left_bytes[kLanes] = {};  // 0: the lane is free
  uint32_t entry[kLanes] = {};
  uint32_t seen[kLanes] = {};
  uint32_t index[kLanes] = {};

  [[nodiscard]] uint32_t n_busy() const {
    uint32_t n = 0;
    for (uint32_t l = 0; l < kLanes; ++l) n += left_bytes[l] != 0 ? 1 : 0;
    return n;
  }
  template <uint32_t kOthers>
  void take_over(const Lanes<kOthers>& others) {
    uint32_t l = 0;
    for (uint32_t o = 0; o < kOthers; ++o) {
      if (others.left_bytes[o] == 0) continue;
      at[l] = others.at[o];
      left_bytes[l] = others.left_bytes[o];
      entry[l] = others.entry[o];
      seen[l] = others.seen[o];
      index[l++] = others.index[o];
    }
  }
};

template <uint32_t kLanes>
void Automaton::step(Lanes<kLanes>& lanes, uint32_t n_steps) const noexcept {
  const uint32_t* const table = table_.data();
  const uint8_t* const class_of = class_of_.data();
  uint32_t entry[kLanes];
  uint32_t seen[kLanes];
  const uint8_t* at[kLanes] = {};
  for (uint32_t l = 0; l < kLanes; ++l) {
    entry[l] = lanes.entry[l];
    seen[l] = lanes.seen[l];
    at[l] = lanes.left_bytes[l] == 0 ? kNothing : lanes.at[l];
  }
  for (uint32_t s = 0; s < n_steps; ++s) {
#pragma GCC unroll 8
    for (uint32_t l = 0; l < kLanes; ++l) {
      entry[l] = table[(entry[l] & kRowMask) + class_of[at[l][s]]];
      seen[l] |= entry[l];
    }
  }
  for (uint32_t l = 0; l < kLanes; ++l) {
    lanes.entry[l] = entry[l];
    lanes.seen[l] = seen[l];
  }
}

// Runs until at most `least_busy` lanes are busy.
template <uint32_t kLanes>
void Automaton::run(Lanes<kLanes>& lanes, uint32_t least_busy, const Text* texts, uint32_t n,
                    uint32_t& at, bool* is_hit) const noexcept {
  for (;;) {
    uint32_t n_steps = kMostSteps;
    uint32_t n_busy = 0;
    for (uint32_t l = 0; l < kLanes; ++l) {
      while (lanes.left_bytes[l] == 0 && at < n) {
        is_hit[at] = false;
        lanes.at[l] = texts[at].data;
        lanes.left_bytes[l] = texts[at].len_bytes;
        lanes.entry[l] = lanes.seen[l] = 0;
        lanes.index[l] = at++;
      }
      if (lanes.left_bytes[l] == 0) continue;
      n_steps = std::min(n_steps, lanes.left_bytes[l]);
      ++n_busy;
    }
    if (n_busy <= least_busy) return;
    step(lanes, n_steps);
    for (uint32_t l = 0; l < kLanes; ++l) {
      if (lanes.left_bytes[l] == 0) continue;
      lanes.at[l] += n_steps;
      lanes.left_bytes[l] -= n_steps;
      if (lanes.left_bytes[l] == 0) is_hit[lanes.index[l]] = (lanes.seen[l] & kHasOutput) != 0;
    }
  }
}

void Automaton::scan(const Text* texts, uint32_t n, bool* is_hit) const noexcept {
  uint32_t at = 0;
  Lanes<8> eight;
  if (n > 4) run(eight, 4, texts, n, at, is_hit);
  Lanes<4> four;
  four.take_over(eight);
  if (n > 1) run(four, 1, texts, n, at, is_hit);
  Lanes<1> one;
  one.take_over(four);
  run(one, 0, texts, n, at, is_hit);
}

Walk Automaton::walk(const Text& text) const noexcept {
  Walk walk;
  while (walk.n_bytes < text.len_bytes && !is_hit(walk))
    walk.entry = next(walk.entry, text.data[walk.n_bytes++]);
  return walk;
}

std::vector<uint32_t> Automaton::words() const {
  std::vector<uint32_t> words(class_of_.size() / sizeof(uint32_t));
  std::memcpy(words.data(), class_of_.data(), class_of_.size());
  size_t longest_bytes = 0;
  for (const Literal& literal : literals_)
    longest_bytes = std::max(longest_bytes, literal.bytes.size());
  words.push_back(static_cast<uint32_t>(longest_bytes));
  words.insert(words.end(), table_.begin(), table_.end());
  return words;
}

void Automaton::scan_singly(const Text* texts, uint32_t n, bool* is_hit) const noexcept {
  uint32_t at = 0;
  Lanes<1> one;
  run(one, 0, texts, n, at, is_hit);
}

}  // namespace batchplane::dpi
