// SPDX-License-Identifier: BSD-3-Clause
// module_alloc_test.cc - no kind of module allocates on the data path, whatever frames it sees.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "alloc_count.h"
#include "cases/cases.h"
#include "frames6.h"
#include "fuzz/world.h"
#include "module_harness.h"

namespace batchplane::property {
namespace {

// Of another test in this program.
const cases::FuzzCase kTestCase{"test_hold", "{}"};

// IPv6 of several kinds, and fragments that want to be put together.
void add_more_frames(std::vector<Bytes>& all) {
  for (const char* dst : {"2a00::1", "2b00::1", "2001:db8:2::7", "2001:db8:1::1", "ff02::1"}) {
    all.push_back(make_frame6({.ip_dst = dst}));
    all.push_back(make_frame6({.ip_dst = dst, .hop_limit = 1, .payload_bytes = 1400}));
    all.push_back(
        make_icmp6({.ip_src = "2001:db8:2::9", .ip_dst = dst}, {128, 0, 0, 0, 0, 1, 0, 1}));
  }
  Bytes solicitation(24);
  solicitation[0] = 135;
  net::store_address6(&solicitation[8], ip6("2001:db8:1::1"));
  const uint8_t option[] = {1, 1, 2, 0, 0, 0, 0, 9};
  solicitation.insert(solicitation.end(), std::begin(option), std::end(option));
  const Frame6Spec asker{.ip_src = "2001:db8:1::9", .ip_dst = "ff02::1:ff00:1", .hop_limit = 255};
  all.push_back(make_icmp6(asker, solicitation));
  for (const uint16_t fragment : {0x2000, 0x2004, 0x0008}) {
    all.push_back(make_frame({.len_bytes = 34 + 32}));
    net::store16(&all.back()[20], fragment);
    mend_ipv4_checksum(all.back());
  }
}

// Frames that take modules down their various ways: forwarded, expired, unresolved, local, foreign,
// tagged, truncated, empty.
std::vector<Bytes> frames() {
  std::vector<Bytes> all;
  for (uint32_t i = 0; i < 8; ++i) {
    all.push_back(make_frame({.ip_dst = 0x0a090000 + i, .port_src = static_cast<uint16_t>(i)}));
    all.push_back(make_frame({.ip_dst = 0x0a000200 + i * 7, .len_bytes = 60 + i * 180}));
  }
  all.push_back(make_frame({.ttl = 1}));
  all.push_back(make_frame({.ip_dst = 0x0a000101, .proto = net::kProtoIcmp}));
  all.back()[net::kEthBytes + net::kIpv4Bytes] = 8;  // echo request
  all.push_back(make_frame({.len_bytes = 100, .options_bytes = 40}));
  Bytes arp = make_frame({.dst = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}});
  net::store16(&arp[12], net::kTypeArp);
  const uint8_t request[] = {0,  1, 8, 0,  6, 4, 0, 1, 2, 0, 0,  0, 0, 9,
                             10, 0, 2, 77, 0, 0, 0, 0, 0, 0, 10, 0, 2, 1};
  std::ranges::copy(request, arp.begin() + net::kEthBytes);
  all.push_back(arp);
  Bytes tagged = make_frame({.len_bytes = 64});
  net::store16(&tagged[12], net::kTypeVlan);
  all.push_back(tagged);
  for (const uint32_t len : {0U, 1U, 13U, 14U, 20U, 33U}) {
    all.push_back(make_frame());
    all.back().resize(len);
  }
  add_more_frames(all);
  return all;
}

// What the executor would do with the fates of a call; none of it is measured.
void settle(ModuleHarness& harness, Batch& batch) {
  Context& ctx = harness.ctx();
  const Shape shape = harness.info().shape;
  const bool is_end = shape == Shape::kTerminal || shape == Shape::kQueue;
  for (uint32_t i = 0; i < batch.size_pkts; ++i) {
    if (batch[i] != nullptr && !is_end) ctx.free(batch[i]);
  }
  for (uint32_t i = 0; i < ctx.n_dropped; ++i) ctx.free(ctx.dropped[i].pkt);
  for (uint32_t i = 0; i < ctx.n_emitted; ++i) ctx.free(ctx.emitted[i].pkt);
  ctx.n_removed = ctx.n_dropped = ctx.n_emitted = ctx.n_fates = 0;
  ctx.flush_free();
}

// Allocations of one call of the module's function, of a poll, and of its timers.
uint64_t allocations_of_round(ModuleHarness& harness, const std::vector<Bytes>& all,
                              uint32_t round) {
  Context& ctx = harness.ctx();
  uint64_t allocations = 0;
  harness.set_now_ns(1'000'000 + round * 700'000ULL);
  harness.meta().in_interface = static_cast<uint16_t>(round % 2);
  harness.meta().drop_reason = static_cast<uint16_t>(round % drop_reasons().size());
  harness.meta().next_hop = round % 5;
  Batch batch{nullptr, 0, ctx.now_ns};
  std::vector<Packet*> pkts;
  if (harness.info().run != nullptr) {
    for (const Bytes& frame : all) pkts.push_back(harness.make_packet(frame));
    batch = {pkts.data(), static_cast<uint32_t>(pkts.size()), ctx.now_ns};
    const uint64_t before = allocations_here();
    harness.info().run(&harness.module(), ctx, batch.pkts, batch.size_pkts);
    allocations += allocations_here() - before;
    ctx.meter->flush(ctx.now_ns);
    settle(harness, batch);
  }
  if (harness.info().poll != nullptr) {
    Packet* polled[exec::kMaxBatchPkts];
    const uint64_t before = allocations_here();
    const uint32_t n = harness.info().poll(harness.module(), ctx, polled, 64);
    allocations += allocations_here() - before;
    ctx.free(polled, n);
    ctx.flush_free();
  }
  if (harness.module().housekeep_interval_ns() != 0) {
    Batch none{nullptr, 0, ctx.now_ns};
    const uint64_t before = allocations_here();
    harness.module().housekeep(ctx, 100'000);
    allocations += allocations_here() - before;
    settle(harness, none);
  }
  return allocations;
}

void expect_none(const cases::FuzzCase& one, Environment& env,
                 const std::filesystem::path& folder) {
  const auto harness = std::make_unique<ModuleHarness>(one.kind, fuzz::params_of(one, folder),
                                                       one.connected_gates, &env);
  const std::vector<Bytes> all = frames();
  const auto loop = env.port(fuzz::kLoopPort);
  for (uint32_t round = 0; round < 200; ++round) {
    if (harness->info().shape == Shape::kInput) {
      for (const Bytes& frame : all) {
        Packet* pkt = harness->make_packet(frame);
        if (loop->tx_burst(&pkt, 1) == 0) harness->ctx().free(pkt);
      }
    }
    ASSERT_EQ(allocations_of_round(*harness, all, round), 0U)
        << one.kind << " " << one.params << ", round " << round;
    Packet* left = nullptr;
    while (loop->rx_burst(&left, 1, harness->ctx().now_ns) != 0) harness->ctx().free(left);
  }
}

TEST(Modules, NoKindAllocatesOnTheDataPath) {
  const fuzz::TempFolder folder;
  std::set<std::string> covered;
  std::vector<cases::FuzzCase> all = cases::fuzz_cases();
  all.push_back(kTestCase);
  for (const cases::FuzzCase& one : all) {
    covered.insert(one.kind);
    const auto env = fuzz::make_environment();
    try {
      expect_none(one, *env, folder.path());
    } catch (const ConfigError& mistake) {
      if (!one.needs_kernel) FAIL() << one.kind << ": " << mistake.line();
      std::printf("not run: %s\n", mistake.line().c_str());
    }
  }
  EXPECT_EQ(cases::faults_of(cases::Need::kFuzz, covered), std::vector<std::string>{});
}

TEST(AllocationsHere, CountsWhatThisThreadAllocates) {
  const uint64_t before = allocations_here();
  std::vector<int> numbers(100, 1);
  EXPECT_EQ(numbers[99], 1);
  EXPECT_GT(allocations_here(), before);
}

}  // namespace
}  // namespace batchplane::property
