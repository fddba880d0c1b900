// SPDX-License-Identifier: BSD-3-Clause
// esp_replay.h - anti-replay window: the sequence numbers of an SA that have arrived (RFC 4303,
// 3.4.3 and appendix A).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace batchplane::esp {

// A ring bitmap that slides by whole words, as in RFC 6479. Owner: one worker at a time.
class ReplayWindow {
 public:
  // Numbers this far behind the highest are too old; a multiple of 64. 0: no window, accepts all.
  explicit ReplayWindow(uint32_t window_pkts) : window_pkts_(window_pkts) {
    if (window_pkts != 0) words_.resize(ring_words(window_pkts));
  }

  [[nodiscard]] uint64_t highest() const { return highest_; }

  // The full sequence number for a low half: the smallest that is not too old. Without a window,
  // the high half is that of the highest number received.
  [[nodiscard]] uint64_t sequence_of(uint32_t low) const { return sequence_of(low, highest_); }
  // With an explicit highest number, for threads that may not read this window's.
  [[nodiscard]] uint64_t sequence_of(uint32_t low, uint64_t highest) const {
    if (window_pkts_ == 0) return highest >> 32 << 32 | low;
    const uint64_t reach = window_pkts_ - 1;
    const uint64_t bottom = highest >= reach ? highest - reach : 0;
    const uint64_t high = bottom >> 32 << 32;
    const uint64_t whole = high | low;
    return whole >= bottom ? whole : whole + (1ULL << 32);
  }

  [[nodiscard]] bool is_fresh(uint64_t sequence) const {
    if (sequence == 0) return false;
    if (window_pkts_ == 0 || sequence > highest_) return true;
    if (highest_ - sequence >= window_pkts_) return false;
    return (words_[word_of(sequence)] >> (sequence & 63) & 1) == 0;
  }

  // Call only after the packet was authenticated.
  void mark(uint64_t sequence) {
    if (window_pkts_ == 0) {
      highest_ = std::max(highest_, sequence);
      return;
    }
    if (sequence > highest_) {
      const uint64_t steps = (sequence >> 6) - (highest_ >> 6);
      const uint64_t n_words = words_.size();
      for (uint64_t i = 1; i <= std::min(steps, n_words); ++i) {
        words_[((highest_ >> 6) + i) & (n_words - 1)] = 0;
      }
      highest_ = sequence;
    }
    words_[word_of(sequence)] |= 1ULL << (sequence & 63);
  }

 private:
  // One word more than the window, so that old and new numbers never share a word; a power of two.
  static size_t ring_words(uint32_t window_pkts) {
    size_t n = 1;
    while (n < window_pkts / 64 + 1) n *= 2;
    return n;
  }
  [[nodiscard]] size_t word_of(uint64_t sequence) const {
    return (sequence >> 6) & (words_.size() - 1);
  }

  uint32_t window_pkts_;
  uint64_t highest_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace batchplane::esp
