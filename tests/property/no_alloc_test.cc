// SPDX-License-Identifier: BSD-3-Clause
// no_alloc_test.cc - the executor allocates nothing while it runs, whatever makes buffers release.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "alloc_count.h"
#include "exec_world.h"

namespace {
thread_local uint64_t n_allocations = 0;

void* counted(size_t n_bytes) noexcept {
  ++n_allocations;
  return std::malloc(n_bytes == 0 ? 1 : n_bytes);
}
void* checked(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

// All forms: a sanitizer minds when one that is replaced frees what one that is not has made.
void* operator new(size_t n_bytes) { return checked(counted(n_bytes)); }
void* operator new[](size_t n_bytes) { return checked(counted(n_bytes)); }
void* operator new(size_t n_bytes, const std::nothrow_t&) noexcept { return counted(n_bytes); }
void* operator new[](size_t n_bytes, const std::nothrow_t&) noexcept { return counted(n_bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace batchplane::property {

uint64_t allocations_here() { return n_allocations; }

namespace {

NodePlan buffered(Role role, std::vector<uint32_t> targets) {
  NodePlan node{role, std::move(targets)};
  node.trigger_pkts = 16;
  node.release_at_pkts = 5;
  node.age_limit_ns = 5000;
  return node;
}

TEST(Executor, AllocatesNothingWhateverMakesBuffersRelease) {
  Plan plan{32, 9, {}};
  std::vector<uint32_t> many_gates(100);
  for (uint32_t g = 0; g < many_gates.size(); ++g) many_gates[g] = 1 + g % 3;
  plan.nodes = {buffered(Role::kSplitter, many_gates), buffered(Role::kInPlace, {4}),
                buffered(Role::kInPlace, {4}),         buffered(Role::kSplitter, {4, 5}),
                buffered(Role::kInPlace, {5}),         buffered(Role::kTerminal, {})};
  plan.nodes[1].drop_one_in = 3;
  plan.nodes[1].drop_target = 3;
  plan.nodes[2].keep_one_in = 2;
  plan.nodes[2].emit_at = 20;
  World world(plan);
  Rng rng(2);
  std::vector<Pkt> batch(32);
  uint64_t now_ns = 1'000'000;
  uint64_t id = 0;
  const uint64_t before = allocations_here();
  for (uint32_t loop = 0; loop < 900; ++loop) {
    now_ns += rng.below(2500);
    world.set_now(now_ns);
    // Several edits of one buffer between two loops must not grow anything either.
    for (uint32_t k = 0; k < 6; ++k)
      world.executor().set_trigger(world.node(rng.below(6)), rng.below(33), 3);
    world.begin_loop();
    world.tick(2);
    if (loop % 3 == 0) {
      world.executor().release_oldest();
      continue;
    }
    for (Pkt& pkt : batch) pkt = {id++, rng.below(40), now_ns};
    world.run(batch.data(), 32, loop % 5 == 0);
  }
  EXPECT_EQ(allocations_here(), before);
  uint64_t firings[exec::kCauses] = {};
  for (uint32_t i = 0; i < 6; ++i) {
    for (uint32_t c = 0; c < exec::kCauses; ++c)
      firings[c] += world.node(i).queue->causes[c].firings;
  }
  for (uint32_t c = 0; c < exec::kCauses; ++c) EXPECT_GT(firings[c], 10U) << exec::kCauseNames[c];
}

}  // namespace
}  // namespace batchplane::property
