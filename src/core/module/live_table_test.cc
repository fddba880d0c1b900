// SPDX-License-Identifier: BSD-3-Clause
// live_table_test.cc - which workers are waited for before a table's old instance is edited, and the state
// after a failed edit.
#include "core/module/live_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace batchplane {
namespace {

TEST(Quiescence, WaitsForNobodyWhoIsNotOnline) {
  Quiescence quiescence;
  quiescence.wait();
  quiescence.set_online(3, true);
  quiescence.set_online(3, false);
  quiescence.wait();
}

// The waiter must not return before the worker has passed, or left.
void expect_waits(void (*let_go)(Quiescence&)) {
  for (int round = 0; round < 5; ++round) {
    Quiescence quiescence;
    quiescence.pass(7);  // what came before the wait does not count
    quiescence.set_online(7, true);
    std::atomic<bool> may_return{false};
    std::atomic<bool> is_waiting{false};
    std::atomic<bool> was_early{false};
    std::thread waiter([&] {
      is_waiting.store(true);
      quiescence.wait();
      was_early.store(!may_return.load());
    });
    while (!is_waiting.load()) std::this_thread::yield();
    for (int i = 0; i < 10; ++i) std::this_thread::yield();
    may_return.store(true);
    let_go(quiescence);
    // If the worker passed before the waiter looked, it is waited for once more.
    quiescence.set_online(7, false);
    waiter.join();
    ASSERT_FALSE(was_early.load());
  }
}

TEST(Quiescence, WaitsUntilAWorkerPasses) {
  expect_waits([](Quiescence& quiescence) { quiescence.pass(7); });
}

TEST(Quiescence, WaitsUntilAWorkerLeaves) {
  expect_waits([](Quiescence& quiescence) { quiescence.set_online(7, false); });
}

TEST(Quiescence, EveryWorkerHasToPass) {
  Quiescence quiescence;
  std::atomic<uint32_t> n_ready{0};
  std::atomic<bool> must_stop{false};
  std::atomic<uint64_t> passes[3] = {};
  std::vector<std::thread> workers;
  for (uint32_t w = 0; w < 3; ++w) {
    workers.emplace_back([&, w] {
      quiescence.set_online(w, true);
      ++n_ready;
      while (!must_stop.load()) {
        passes[w].fetch_add(1);
        quiescence.pass(w);
        std::this_thread::yield();
      }
      quiescence.set_online(w, false);
    });
  }
  while (n_ready.load() != 3) std::this_thread::yield();
  for (int round = 0; round < 10; ++round) {
    uint64_t before[3];
    for (uint32_t w = 0; w < 3; ++w) before[w] = passes[w].load();
    // Each worker increments its count here before the one for the wait: after two waits both have risen.
    for (int i = 0; i < 2; ++i) quiescence.wait();
    for (uint32_t w = 0; w < 3; ++w) EXPECT_GT(passes[w].load(), before[w]);
  }
  must_stop.store(true);
  for (std::thread& worker : workers) worker.join();
}

TEST(LiveTable, AnEditThatFailsIsNotSeen) {
  LiveTable<int> table(std::make_unique<int>(1), std::make_unique<int>(1), nullptr);
  EXPECT_THROW(table.edit([](int&) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(table.read(), 1);
  table.edit([](int& value) { value += 4; });
  EXPECT_EQ(table.read(), 5);
  table.edit([](int& value) { value *= 2; });
  EXPECT_EQ(table.read(), 10) << "both halves were edited";
  EXPECT_EQ(table.current(), 10);
}

TEST(LiveTable, ReplaceSwapsInBothHalves) {
  LiveTable<int> table(std::make_unique<int>(1), std::make_unique<int>(1), nullptr);
  table.replace(std::make_unique<int>(7), std::make_unique<int>(7));
  EXPECT_EQ(table.read(), 7);
  table.edit([](int& value) { ++value; });
  EXPECT_EQ(table.read(), 8);
}

TEST(LiveTable, WhatAReaderLoadedStaysUntouchedUntilItPasses) {
  Quiescence quiescence;
  LiveTable<int> table(std::make_unique<int>(1), std::make_unique<int>(1), &quiescence);
  quiescence.set_online(0, true);
  const int& loaded = table.read();
  std::atomic<bool> is_editing{false};
  std::thread control([&] {
    is_editing.store(true);
    table.edit([](int& value) { value = 2; });
  });
  while (&table.read() == &loaded) std::this_thread::yield();
  EXPECT_TRUE(is_editing.load());
  EXPECT_EQ(loaded, 1) << "the half in use";
  EXPECT_EQ(table.read(), 2) << "the other one is seen already";
  quiescence.set_online(0, false);
  control.join();
  EXPECT_EQ(table.read(), 2);
}

}  // namespace
}  // namespace batchplane
