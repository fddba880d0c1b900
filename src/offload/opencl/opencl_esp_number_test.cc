// SPDX-License-Identifier: BSD-3-Clause
// opencl_esp_number_test.cc - sequence numbers guessed for a device: right in normal operation, and in every
// case no two packets leave with the same number and no number is skipped.
#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "offload/opencl/esp_way_test_util.h"
#include "offload/opencl/host_device_test_util.h"

namespace batchplane::offload {
namespace opencl_esp_number_test {

using esp_way_test::params_of;
using esp_way_test::receiving;
using esp_way_test::sa_of;
using esp_way_test::Sent;
using esp_way_test::sent_of;
using esp_way_test::Way;

constexpr uint32_t kFirstId = 10;
constexpr uint32_t kSas = 4;
constexpr uint32_t kBodyAt = 50;  // behind Ethernet, IPv4, ESP and IV

Dict sas() {
  List all;
  for (uint32_t i = 0; i < kSas; ++i)
    all.push_back(sa_of(kFirstId + i, i % 2 == 0 ? "aes-128-gcm" : "aes-256-gcm"));
  return params_of(all);
}
std::vector<Sent> batch_of(Rng& rng, uint32_t n) {
  std::vector<Sent> all;
  for (uint32_t i = 0; i < n; ++i)
    all.push_back({make_frame({.port_src = static_cast<uint16_t>(rng.below(60'000)),
                               .len_bytes = 60 + rng.below(200)}),
                   kFirstId + rng.below(kSas)});
  return all;
}
// Each SA's numbers go up by one, and all packets arrive at the other end.
void expect_whole(const Way& way, size_t n_pkts) {
  const std::vector<Bytes> left = way.left();
  ASSERT_EQ(left.size(), n_pkts);
  std::map<uint32_t, uint32_t> last;
  for (const Bytes& frame : left)
    ASSERT_EQ(net::load32(&frame[38]), ++last[net::load32(&frame[34])]);
  Way other("esp_decrypt", receiving(sas()));
  for (size_t at = 0; at < left.size(); at += 512) {
    const size_t end = std::min(left.size(), at + 512);
    other.run_here(sent_of(
        {left.begin() + static_cast<int64_t>(at), left.begin() + static_cast<int64_t>(end)}));
  }
  EXPECT_EQ(other.left().size(), n_pkts);
}

// Without a device: distinguishes a device's output from what the CPU computes.
TEST(OpenClEspNumbers, WhatIsMadeByAnotherNumberNeverLeaves) {
  Rng rng(1);
  Way way("esp_encrypt", sas());
  RewritingKernel& kernel = *way.side.kernel().rewriting();
  const auto leaves = [&](const Bytes& input, const Bytes& returned, uint64_t result, bool& right) {
    way.side.take({make_frame({})});
    way.side.pkts[0]->meta().tunnel_id = kFirstId;
    const RewritingKernel::Rewritten rewritten{input, returned.data()};
    right = way.side.runner.apply(kernel.table(), *way.side.ctx, way.side.pkts.data(), 1,
                                  reinterpret_cast<const uint8_t*>(&result), &rewritten);
    Packet& pkt = *way.side.pkts[0];
    return Bytes(pkt.data(), pkt.data() + pkt.len_bytes());
  };
  const auto input_of = [&] {
    way.side.take({make_frame({})});
    way.side.pkts[0]->meta().tunnel_id = kFirstId;
    Bytes input(512);
    input.resize(kernel.write_input(*way.side.pkts[0], input));
    return input;
  };
  const auto is_made_there = [](const Bytes& frame) {
    return std::all_of(frame.begin() + kBodyAt, frame.end(),
                       [](uint8_t byte) { return byte == 0xab; });
  };
  kernel.guess_anew();
  const Bytes first = input_of();
  const Bytes second = input_of();
  const Bytes third = input_of();
  const Bytes returned(first.size(), 0xab);
  bool is_right = false;
  EXPECT_TRUE(is_made_there(leaves(first, returned, 1, is_right)));
  EXPECT_TRUE(is_right);
  EXPECT_FALSE(is_made_there(leaves(first, returned, 1, is_right)));  // the number was already used
  EXPECT_FALSE(is_right);
  EXPECT_FALSE(is_made_there(leaves(second, returned, 1, is_right)));  // this one too, by now
  EXPECT_FALSE(is_made_there(leaves(third, returned, 1, is_right)));
  kernel.guess_anew();
  const Bytes fifth = input_of();
  EXPECT_FALSE(is_made_there(leaves(fifth, returned, 2, is_right)));  // it was not computed
  EXPECT_TRUE(is_right);
  kernel.guess_anew();
  const Bytes sixth = input_of();
  EXPECT_TRUE(is_made_there(leaves(sixth, returned, 1, is_right)));
  EXPECT_TRUE(is_right);
}

// Arbitrary device results for packets that are not checked.
TEST(OpenClEspNumbers, AnyResultsAreSurvived) {
  Rng rng(3);
  for (const std::string kind : {"esp_encrypt", "esp_decrypt"}) {
    Way out("esp_encrypt", sas());
    Way way(kind, kind == "esp_encrypt" ? sas() : receiving(sas()));
    RewritingKernel& kernel = *way.side.kernel().rewriting();
    for (uint32_t round = 0; round < 40; ++round) {
      std::vector<Bytes> frames;
      for (const Sent& one : batch_of(rng, 200)) frames.push_back(one.frame);
      Way sender("esp_encrypt", sas());
      if (kind == "esp_decrypt") {
        sender.run_here(batch_of(rng, 200));
        frames = sender.left();
      }
      way.side.take(frames);
      std::vector<Bytes> inputs;
      std::vector<Bytes> returned;
      std::vector<RewritingKernel::Rewritten> rewritten;
      std::vector<uint64_t> results;
      for (Packet* pkt : way.side.pkts) {
        pkt->meta().tunnel_id = kFirstId + rng.below(kSas);
        Bytes input(1024);
        input.resize(kernel.write_input(*pkt, input));
        inputs.push_back(input);
        for (uint8_t& byte : input) byte = static_cast<uint8_t>(rng.below(256));
        returned.push_back(input);
        results.push_back(rng.next() >> rng.below(64));
      }
      for (size_t i = 0; i < inputs.size(); ++i)
        rewritten.push_back({inputs[i], returned[i].data()});
      way.side.runner.apply(kernel.table(), *way.side.ctx, way.side.pkts.data(), 200,
                            reinterpret_cast<const uint8_t*>(results.data()), rewritten.data());
      for (const auto& [fate, mark] : way.side.fates())
        ASSERT_TRUE((fate & kDropFate) != 0 || fate < 3);
    }
  }
}

TEST(OpenClEspNumbers, GuessesAreRightWhileNothingHappens) {
  const auto device = std::make_shared<HostDevice>();
  device->faults.n_polls = 2;
  for (const uint32_t n_devices : {1U, 2U}) {
    Rng rng(7);
    Way way("esp_encrypt", sas());
    for (uint32_t i = 0; i < n_devices; ++i) way.add_device(device);
    for (uint32_t round = 0; round < 30; ++round) {
      way.submit(batch_of(rng, 10), rng.below(n_devices));
      way.submit(batch_of(rng, 10), rng.below(n_devices));
      if (rng.below(3) == 0) way.serve();
      if (rng.below(4) == 0) way.run_here(batch_of(rng, 10));
    }
    way.finish();
    uint64_t n_outdated = 0;
    for (uint32_t i = 0; i < n_devices; ++i) n_outdated += way.lane(i).n_outdated();
    EXPECT_EQ(n_outdated, 0U);
    expect_whole(way, way.left().size());
    EXPECT_GE(way.left().size(), 600U);
  }
}

// The worker takes batches back, edits change each SA's place in the table, and devices take turns.
TEST(OpenClEspNumbers, WhateverHappensNoNumberIsGivenTwice) {
  const auto device = std::make_shared<HostDevice>();
  device->faults.n_polls = 2;
  Rng rng(11);
  Way way("esp_encrypt", sas());
  way.add_device(device);
  way.add_device(device);
  size_t n_pkts = 0;
  bool has_more = false;
  for (uint32_t round = 0; round < 150 && !testing::Test::HasFailure(); ++round) {
    Job& job = way.submit(batch_of(rng, 1 + rng.below(12)), rng.below(2));
    n_pkts += job.n_pkts;
    for (uint32_t i = rng.below(4); i > 0; --i) way.serve();
    if (rng.below(5) == 0) {
      has_more = !has_more;
      way.command(has_more ? "add" : "delete",
                  has_more ? sa_of(2, "aes-192-gcm") : Dict{{"id", 2}});
    }
    if (rng.below(5) == 0 && job.waits_as(job.number)) way.take_back(job);
  }
  way.finish();
  EXPECT_GT(way.lane(0).n_outdated() + way.lane(1).n_outdated(), 0U);
  const uint64_t before = way.lane(0).n_outdated();
  for (uint32_t round = 0; round < 20; ++round) n_pkts += way.submit(batch_of(rng, 5), 0).n_pkts;
  way.finish();
  EXPECT_EQ(way.lane(0).n_outdated(), before);  // later guesses are right again
  expect_whole(way, n_pkts);
}

// Results may be right while bytes are wrong: the trial and later checks compare both.
TEST(OpenClEspNumbers, BytesThatAreWrongTakeADeviceOut) {
  const auto device = std::make_shared<HostDevice>();
  Rng rng(19);
  Way way("esp_encrypt", sas());
  way.add_device(device);
  device->faults.is_byte_wrong = true;
  Job& job = way.submit(batch_of(rng, 10), 0);
  while (way.serve_once(0)) {
  }
  ASSERT_NE(way.lane(0).fault().what, nullptr);
  EXPECT_STREQ(way.lane(0).fault().what, "results were wrong");
  way.take_back(job);
  expect_whole(way, 10);
  const std::string line = refusal_of([&] { way.add_device(device); });
  EXPECT_NE(line.find("computes wrong there"), std::string::npos) << line;
}

// A new key restarts the numbers while batches are in flight and another always waits.
TEST(OpenClEspNumbers, BecomeRightAgainWithoutAPause) {
  const auto device = std::make_shared<HostDevice>();
  device->faults.n_polls = 2;
  Rng rng(23);
  Way way("esp_encrypt", sas());
  way.add_device(device);
  for (uint32_t i = 0; i < 60; ++i) way.submit(batch_of(rng, 20), 0);
  for (uint32_t i = 0; i < 20; ++i) way.serve();
  way.command("add", sa_of(kFirstId, "aes-192-gcm"));
  way.finish();
  EXPECT_GT(way.lane(0).n_outdated(), 0U);
  EXPECT_LE(way.lane(0).n_outdated(), 4U);  // those in flight then, and those with wrong guesses
}

// The high half of a number changes while two batches are in flight.
TEST(OpenClEspNumbers, OfWhichTheHighHalfChanges) {
  const auto device = std::make_shared<HostDevice>();
  device->faults.n_polls = 2;
  const Dict sa = sa_of(kFirstId, "aes-256-gcm", {{"esn", true}, {"first_sequence", 0xffffff00}});
  Way out("esp_encrypt", params_of({sa}));
  Way in("esp_decrypt", receiving(params_of({sa})));
  out.add_device(device);
  in.add_device(device);
  Rng rng(13);
  const std::vector<Sent> ten(10, {make_frame({}), kFirstId});
  // Until the first batch has ended, the other end takes the new numbers for small ones.
  out.run_here(ten);
  in.run_here(sent_of(out.left()));
  for (uint32_t round = 0; round < 60; ++round) out.submit(ten, 0);
  out.finish();
  EXPECT_EQ(out.lane(0).n_outdated(), 0U);
  const std::vector<Bytes> left = out.left();
  ASSERT_EQ(left.size(), 610U);
  for (size_t at = 10; at < left.size(); at += 60) {
    std::vector<Bytes> some(left.begin() + static_cast<int64_t>(at),
                            left.begin() + static_cast<int64_t>(at) + 60);
    std::ranges::reverse(some);
    in.submit(sent_of(some), 0);
  }
  in.finish();
  EXPECT_EQ(in.left().size(), 610U);
}

}  // namespace opencl_esp_number_test
}  // namespace batchplane::offload
