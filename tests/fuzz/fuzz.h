// SPDX-License-Identifier: BSD-3-Clause
// fuzz.h - the fuzz targets as plain functions, and what they share.
//
// Two programs run a target: libFuzzer's (entry.cc) and one that replays a corpus and mutates it
// from a seed (driver.cc). A target ends the process when something is wrong; it never returns a
// failure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

namespace batchplane::fuzz {

int fuzz_modules(const uint8_t* data, size_t size);
int fuzz_router(const uint8_t* data, size_t size);
int fuzz_pipeline(const uint8_t* data, size_t size);
int fuzz_control(const uint8_t* data, size_t size);
int fuzz_pcap(const uint8_t* data, size_t size);

// What the targets have done so far, for the closing line.
struct Tally {
  uint64_t frames = 0;    // cut from inputs
  uint64_t pkts = 0;      // given to a module or a pipeline
  uint64_t accepted = 0;  // inputs that were well-formed to the end
};
inline Tally tally;

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}

inline void require(bool is_so, const char* what) {
  if (!is_so) fail(what);
}

// Takes an input apart; past its end everything is 0.
class ByteReader {
 public:
  ByteReader(const uint8_t* data, size_t size) : rest_(data, size) {}

  [[nodiscard]] bool is_empty() const { return rest_.empty(); }
  uint8_t u8() { return rest_.empty() ? 0 : take(1)[0]; }
  uint16_t u16() {
    const uint8_t high = u8();
    return static_cast<uint16_t>(high << 8 | u8());
  }
  std::span<const uint8_t> take(size_t n_bytes) {
    const auto taken = rest_.first(std::min(n_bytes, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const uint8_t> rest_;
};

}  // namespace batchplane::fuzz
