// SPDX-License-Identifier: BSD-3-Clause
// dpi_automaton_test.cc - compares the automaton with a naive search.
#include "modules/inspect/dpi_automaton.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "modules/inspect/dpi_hyperscan.h"

namespace batchplane::dpi {
namespace {

constexpr uint64_t kMaxBytes = 1 << 28;

std::string lowered(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

using Places = std::multiset<uint32_t>;  // literal indexes, one per occurrence

Places found_slowly(const std::vector<Literal>& literals, const std::string& text) {
  Places places;
  for (uint32_t l = 0; l < literals.size(); ++l) {
    const std::string& bytes = literals[l].bytes;
    const std::string in = literals[l].is_nocase ? lowered(text) : text;
    const std::string what = literals[l].is_nocase ? lowered(bytes) : bytes;
    for (size_t at = 0; at + what.size() <= in.size(); ++at) {
      if (in.compare(at, what.size(), what) == 0) places.insert(l);
    }
  }
  return places;
}

Places found(const Automaton& automaton, const Text& text) {
  Places places;
  automaton.report(text, [&](uint32_t literal) { places.insert(literal); });
  return places;
}

// Few letters, so that literals overlap, are suffixes of one another, and differ only in case.
std::string random_text(Rng& rng, uint32_t most, uint32_t n_letters) {
  std::string text;
  for (uint32_t n = rng.below(most + 1); n > 0; --n) {
    const uint32_t letter = rng.below(n_letters);
    const bool is_upper = rng.below(6) == 0;
    text += static_cast<char>(letter < 26 ? (is_upper ? 'A' : 'a') + static_cast<int>(letter)
                                          : static_cast<int>(rng.below(256)));
  }
  return text;
}

TEST(DpiAutomaton, FindsWhatASearchFinds) {
  Rng rng(5);
  for (uint32_t round = 0; round < 300; ++round) {
    const uint32_t n_letters = 2 + rng.below(round % 3 == 0 ? 40 : 4);
    std::vector<Literal> literals;
    for (uint32_t n = 1 + rng.below(30); n > 0; --n) {
      std::string bytes = random_text(rng, 6, n_letters);
      if (bytes.empty()) continue;
      literals.push_back({bytes, round % 2 == 0 && rng.below(3) == 0});
    }
    const Automaton automaton(literals, kMaxBytes, "test");
    std::vector<std::string> texts;
    for (uint32_t n = 1 + rng.below(40); n > 0; --n) {
      texts.push_back(random_text(rng, rng.below(10) == 0 ? 700 : 60, n_letters));
    }
    std::vector<Text> views;
    for (const std::string& text : texts) {
      views.push_back(
          {reinterpret_cast<const uint8_t*>(text.data()), static_cast<uint32_t>(text.size())});
    }
    const auto n = static_cast<uint32_t>(views.size());
    bool is_hit[64];
    bool is_hit_singly[64];
    automaton.scan(views.data(), n, is_hit);
    automaton.scan_singly(views.data(), n, is_hit_singly);
    for (uint32_t i = 0; i < n; ++i) {
      const Places expected = found_slowly(literals, texts[i]);
      ASSERT_EQ(found(automaton, views[i]), expected) << texts[i];
      ASSERT_EQ(is_hit[i], is_hit_singly[i]);
      // No false negatives; false positives only where the case differs.
      if (!expected.empty()) {
        ASSERT_TRUE(is_hit[i]);
      }
      if (round % 2 == 1) {
        ASSERT_EQ(is_hit[i], !expected.empty());
      }
    }
  }
}

TEST(DpiAutomaton, TakesAnyByte) {
  std::vector<Literal> literals;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    literals.push_back({std::string(1, static_cast<char>(byte)), false});
  }
  const Automaton automaton(literals, kMaxBytes, "test");
  const std::string text("\0\xff\x80 a", 5);
  const Text view{reinterpret_cast<const uint8_t*>(text.data()), 5};
  EXPECT_EQ(found(automaton, view), (Places{0, 255, 128, ' ', 'a'}));
}

TEST(DpiAutomaton, WithoutLiteralsFindsNothing) {
  const Automaton automaton({}, kMaxBytes, "test");
  const std::string text = "anything";
  const Text view{reinterpret_cast<const uint8_t*>(text.data()), 8};
  bool is_hit = true;
  automaton.scan(&view, 1, &is_hit);
  EXPECT_FALSE(is_hit);
}

TEST(DpiAutomaton, RefusesATableThatDoesNotFit) {
  EXPECT_THROW(Automaton({{"abcdefgh", false}}, 100, "test"), ConfigError);
}

// Hyperscan as an independent reference, in case the naive search misreads the literals, too.
TEST(DpiAutomaton, AgreesWithHyperscan) {
  struct Sink final : PatternSink {
    void found(uint32_t pattern) noexcept override { patterns.insert(pattern); }
    std::set<uint32_t> patterns;
  };
  Rng rng(9);
  for (uint32_t round = 0; round < 40; ++round) {
    std::vector<Literal> literals;
    std::vector<Pattern> patterns;
    for (uint32_t n = 1 + rng.below(20); n > 0; --n) {
      std::string bytes = random_text(rng, 5, 27);
      if (bytes.empty()) continue;
      literals.push_back({bytes, rng.below(2) == 0});
      patterns.push_back({bytes, literals.back().is_nocase});
    }
    const Automaton automaton(literals, kMaxBytes, "test");
    Hyperscan hyperscan(patterns, "test");
    for (uint32_t i = 0; i < 50; ++i) {
      const std::string text = random_text(rng, 200, 27);
      const Text view{reinterpret_cast<const uint8_t*>(text.data()),
                      static_cast<uint32_t>(text.size())};
      const Places places = found(automaton, view);
      Sink sink;
      hyperscan.scan(view, sink);
      EXPECT_EQ(sink.patterns, std::set<uint32_t>(places.begin(), places.end()));
    }
  }
}

}  // namespace
}  // namespace batchplane::dpi
