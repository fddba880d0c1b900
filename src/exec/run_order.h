// SPDX-License-Identifier: BSD-3-Clause
// run_order.h - the order in which ready nodes run, as a policy shared by data plane and simulator.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <vector>

namespace batchplane::exec {

// Contract: one owner thread; mark() is idempotent; pop() only when !empty().
template <class T>
concept RunOrder = requires(T order, uint32_t rank) {
  { order.mark(rank) } noexcept;
  { order.empty() } noexcept -> std::same_as<bool>;
  { order.pop() } noexcept -> std::same_as<uint32_t>;
};

// Lowest rank first. Ranks are topological, so a merger runs after everything that can feed it in this run,
// and batches for one node are merged for free. Three levels of bitmaps for 2^18 ranks: mark is three stores,
// pop three bit scans.
class DepthOrder {
 public:
  static constexpr uint32_t kMaxNodes = 1U << 18;

  // n_nodes <= kMaxNodes.
  explicit DepthOrder(uint32_t n_nodes) : words_(n_nodes / 64 + 1), blocks_(n_nodes / 4096 + 1) {}

  void mark(uint32_t rank) noexcept {
    words_[rank >> 6] |= 1ULL << (rank & 63);
    blocks_[rank >> 12] |= 1ULL << ((rank >> 6) & 63);
    top_ |= 1ULL << (rank >> 12);
  }

  [[nodiscard]] bool empty() const noexcept { return top_ == 0; }

  uint32_t pop() noexcept {
    const auto block = static_cast<uint32_t>(std::countr_zero(top_));
    const uint32_t word = (block << 6) + static_cast<uint32_t>(std::countr_zero(blocks_[block]));
    const auto bit = static_cast<uint32_t>(std::countr_zero(words_[word]));
    words_[word] &= words_[word] - 1;
    if (words_[word] == 0) blocks_[block] &= blocks_[block] - 1;
    if (blocks_[block] == 0) top_ &= top_ - 1;
    return (word << 6) + bit;
  }

 private:
  std::vector<uint64_t> words_;   // bit per rank
  std::vector<uint64_t> blocks_;  // bit per word
  uint64_t top_ = 0;              // bit per block
};

static_assert(RunOrder<DepthOrder>);

}  // namespace batchplane::exec
