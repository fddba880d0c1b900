// SPDX-License-Identifier: BSD-3-Clause
// byte_ring_test.cc - records come out as they went in, across the wrap and between two threads.
#include "base/byte_ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/rng.h"

namespace batchplane {
namespace {

std::vector<uint8_t> content(uint64_t id, uint32_t n_bytes) {
  std::vector<uint8_t> bytes(n_bytes);
  for (uint32_t i = 0; i < n_bytes; ++i) bytes[i] = static_cast<uint8_t>(id * 31 + i);
  return bytes;
}

TEST(ByteRing, RefusesWhenFullAndWrapsAround) {
  ByteRing ring(256);
  uint64_t n_in = 0;
  uint64_t n_out = 0;
  Rng rng(3);
  uint8_t buffer[64];
  for (int step = 0; step < 2000; ++step) {
    const auto stored = static_cast<uint32_t>(n_in % 50);
    if (rng.below(2) == 0) {
      if (ring.push({n_in, stored, stored + 1}, content(n_in, stored).data())) {
        ++n_in;
      } else {
        EXPECT_GE(n_in - n_out, 256U / (16 + 56));  // full means full
      }
      continue;
    }
    ByteRing::Record record;
    if (!ring.pop(record, buffer, sizeof buffer)) {
      EXPECT_EQ(n_in, n_out);
      continue;
    }
    EXPECT_EQ(record.time_ns, n_out);
    EXPECT_EQ(record.original_bytes, record.stored_bytes + 1);
    EXPECT_EQ(std::vector<uint8_t>(buffer, buffer + record.stored_bytes),
              content(n_out, static_cast<uint32_t>(n_out % 50)));
    ++n_out;
  }
  EXPECT_GT(n_out, 500U);
}

TEST(ByteRing, ExactlyFullIsAllowed) {
  ByteRing ring(64);
  const uint8_t bytes[48] = {};
  EXPECT_TRUE(ring.push({1, 48, 48}, bytes));
  EXPECT_FALSE(ring.push({2, 0, 0}, bytes));
}

TEST(ByteRing, TwoThreads) {
  ByteRing ring(4096);
  constexpr uint64_t kRecords = 50'000;
  std::thread producer([&] {
    for (uint64_t id = 0; id < kRecords;) {
      const auto n = static_cast<uint32_t>(id % 97);
      if (ring.push({id, n, n}, content(id, n).data())) {
        ++id;
      } else {
        std::this_thread::yield();
      }
    }
  });
  uint8_t buffer[128];
  uint64_t n_wrong = 0;
  for (uint64_t id = 0; id < kRecords;) {
    ByteRing::Record record;
    if (!ring.pop(record, buffer, sizeof buffer)) {
      std::this_thread::yield();
      continue;
    }
    const std::vector<uint8_t> bytes(buffer, buffer + record.stored_bytes);
    n_wrong += record.time_ns != id || bytes != content(id, static_cast<uint32_t>(id % 97));
    ++id;
  }
  producer.join();
  EXPECT_EQ(n_wrong, 0U);
}

}  // namespace
}  // namespace batchplane
