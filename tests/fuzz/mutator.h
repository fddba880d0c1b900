// SPDX-License-Identifier: BSD-3-Clause
// mutator.h - an endless, seeded sequence of inputs that are nearly those of a corpus.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace batchplane::fuzz {

using Bytes = std::vector<uint8_t>;

class Mutator {
 public:
  static constexpr size_t kMaxBytes = 1 << 16;

  Mutator(const std::vector<Bytes>& corpus, uint64_t seed) : corpus_(corpus), random_(seed) {}

  // Valid until the next call. Changes that keep the length come oftener: they leave the framing of
  // what follows alone.
  const Bytes& next() {
    input_ = corpus_[below(corpus_.size())];
    for (size_t n = 1 + below(4); n > 0; --n) {
      if (below(10) < 7) {
        change_in_place();
      } else {
        change_length();
      }
    }
    input_.resize(std::min(input_.size(), kMaxBytes));
    return input_;
  }

 private:
  size_t below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void change_in_place() {
    if (input_.empty()) return;
    uint8_t& byte = input_[below(input_.size())];
    switch (below(5)) {
      case 0:
        byte ^= static_cast<uint8_t>(1U << below(8));
        break;
      case 1:
        byte = static_cast<uint8_t>(random_());
        break;
      case 2: {
        constexpr uint8_t kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff, 0x45, 0x4f, 0x08, 0x81};
        byte = kEdges[below(std::size(kEdges))];
        break;
      }
      case 3:
        byte = static_cast<uint8_t>(byte + below(9) - 4);
        break;
      default: {  // a word of extremes: lengths and offsets are wider than a byte
        const size_t at = below(input_.size());
        const auto fill = static_cast<uint8_t>(below(2) * 255);
        std::fill_n(input_.begin() + static_cast<long>(at), std::min<size_t>(2, input_.size() - at),
                    fill);
      }
    }
  }

  void change_length() {
    const size_t at = below(input_.size() + 1);
    const auto here = input_.begin() + static_cast<long>(at);
    switch (below(4)) {
      case 0:
        input_.resize(at);
        break;
      case 1: {
        const size_t n = std::min(1 + below(8), input_.size() - at);
        input_.erase(here, here + static_cast<long>(n));
        break;
      }
      case 2: {
        Bytes fresh(1 + below(8));
        for (uint8_t& byte : fresh) byte = static_cast<uint8_t>(random_());
        input_.insert(here, fresh.begin(), fresh.end());
        break;
      }
      default: {  // a piece of another input
        const Bytes& other = corpus_[below(corpus_.size())];
        const size_t from = below(other.size() + 1);
        const size_t n = below(other.size() - from + 1);
        input_.insert(here, other.begin() + static_cast<long>(from),
                      other.begin() + static_cast<long>(from + n));
      }
    }
  }

  const std::vector<Bytes>& corpus_;
  std::mt19937_64 random_;
  Bytes input_;
};

}  // namespace batchplane::fuzz
