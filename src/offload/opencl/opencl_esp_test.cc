// SPDX-License-Identifier: BSD-3-Clause
// opencl_esp_test.cc - ESP with AES-GCM on any device at hand: every byte equals the CPU's.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/hex.h"
#include "base/rng.h"
#include "offload/opencl/esp_way_test_util.h"
#include "offload/opencl/host_device_test_util.h"

namespace batchplane::offload {
namespace opencl_esp_test {

using namespace esp_way_test;  // NOLINT(google-build-using-namespace)

constexpr uint32_t kFirstInner = 20;  // an IPv4 header
constexpr uint32_t kLongestInner = 1500;

Bytes bytes_of(const std::string& hex) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(hex_digit_of(hex[i]) << 4 | hex_digit_of(hex[i + 1])));
  return bytes;
}

// IPv4 or, with a header of 40 bytes, IPv6.
Bytes inner_frame(Rng& rng, uint32_t inner_bytes, bool is_v6) {
  Bytes frame(net::kEthBytes + inner_bytes);
  for (uint8_t& byte : frame) byte = static_cast<uint8_t>(rng.below(256));
  net::store16(&frame[12], is_v6 ? net::kTypeIpv6 : net::kTypeIpv4);
  frame[14] = is_v6 ? 0x60 : 0x45;
  if (is_v6) {
    frame[15] = 0;
    net::store16(&frame[18], static_cast<uint16_t>(inner_bytes - net::kIpv6Bytes));
  } else {
    frame[15] = 0;
    net::store16(&frame[16], static_cast<uint16_t>(inner_bytes));
  }
  return frame;
}

// All key sizes, both lengths of sequence numbers, both outer IP versions, with and without UDP.
Dict all_sas() {
  List sas;
  const char* const suites[] = {"aes-128-gcm", "aes-192-gcm", "aes-256-gcm"};
  for (uint32_t id = 0; id < 24; ++id) {
    Dict more{{"esn", id / 3 % 2 != 0}, {"udp", id / 6 % 2 != 0}};
    if (id >= 12) more["local"] = "2001:db8::1", more["remote"] = "2001:db8::2";
    sas.push_back(sa_of(id, suites[id % 3], more));
  }
  return params_of(sas);
}

std::vector<Sent> of_all_lengths(Rng& rng, uint32_t from, uint32_t to, uint32_t first_id) {
  std::vector<Sent> all;
  for (uint32_t n = from; n < to; ++n)
    all.push_back({inner_frame(rng, n, n >= net::kIpv6Bytes && n % 5 == 0), (n + first_id) % 24});
  return all;
}

TEST(OpenClEsp, EveryLengthAsOnTheProcessor) {
  std::string why;
  const auto device = any_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  Rng rng(17);
  for (const uint32_t first_id : {0U, 7U, 13U}) {
    Way here("esp_encrypt", all_sas());
    Way there("esp_encrypt", all_sas());
    there.add_device(device);
    const auto all = of_all_lengths(rng, kFirstInner, kLongestInner + 1, first_id);
    here.run_here(all);
    there.submit(all, 0);
    there.finish();
    const std::vector<Bytes> sent = here.left();
    ASSERT_EQ(sent.size(), all.size());
    ASSERT_EQ(sent, there.left());
    Way received_here("esp_decrypt", receiving(all_sas()));
    Way received_there("esp_decrypt", receiving(all_sas()));
    received_there.add_device(device);
    received_here.run_here(sent_of(sent));
    received_there.submit(sent_of(sent), 0);
    received_there.finish();
    ASSERT_EQ(received_here.left().size(), all.size());
    ASSERT_EQ(received_here.left(), received_there.left());
    ASSERT_EQ(received_here.fates(), received_there.fates());
  }
}

// Of inputs: all up to those of a frame, and around each 32 blocks up to the largest.
std::vector<uint32_t> input_lengths() {
  std::vector<uint32_t> lengths;
  constexpr uint32_t kOwnBytes = 52;
  constexpr uint32_t kRoundBytes = 32 * 16;
  for (uint32_t n = 0; n <= kLongestInner + kOwnBytes; ++n) lengths.push_back(n);
  for (uint32_t n = 4 * kRoundBytes; n <= RewritingKernel::kMostBytes; n += kRoundBytes) {
    for (uint32_t less = 0; less < 100; less += 4) lengths.push_back(n - less);
  }
  return lengths;
}

// The kernel alone: random bodies from 0 bytes on, and invalid inputs.
TEST(OpenClEsp, EveryBodyAsOnTheProcessor) {
  std::string why;
  const auto device = any_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  Rng rng(5);
  for (const std::string kind : {"esp_encrypt", "esp_decrypt"}) {
    Side side(kind, kind == "esp_encrypt" ? all_sas() : receiving(all_sas()), 1);
    RewritingKernel& kernel = *side.kernel().rewriting();
    const auto on_device = device->make_kernel(kernel, 2 * kMostPkts, nullptr, "devices.x");
    std::vector<Bytes> inputs;
    uint32_t n_rights = 0;
    for (const uint32_t n : input_lengths()) {
      Bytes input(n);
      for (uint8_t& byte : input) byte = static_cast<uint8_t>(rng.below(256));
      if (n % 4 == 0) (void)kernel.write_trial(input);
      inputs.push_back(input);
      ASSERT_TRUE(on_device->add(0, input));
    }
    ASSERT_TRUE(on_device->launch(0));
    while (on_device->poll(0) == DeviceKernel::State::kRunning) std::this_thread::yield();
    ASSERT_EQ(on_device->fault().what, nullptr);
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      const std::span<uint8_t> input = inputs[i];
      uint64_t result = 0;
      kernel.compute_over(kernel.table(), &input, 1, reinterpret_cast<uint8_t*>(&result));
      ASSERT_EQ(std::memcmp(on_device->results(0) + i * sizeof result, &result, sizeof result), 0)
          << kind << " of " << input.size() << " bytes";
      ASSERT_TRUE(std::equal(input.begin(), input.end(), on_device->rewritten(0, i).returned))
          << kind << " of " << input.size() << " bytes";
      n_rights += result == 1 ? 1 : 0;
    }
    EXPECT_GT(n_rights, 100U);
  }
}

// The first example of draft-mcgrew-gcm-test-01.
class OpenClEspVector : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("bp_cl_esp_" + std::to_string(::getpid()));
    std::ofstream(path_) << "1 4c80cdefbb5d10da906ac73c3613a6342e443b68\n";
    ::chmod(path_.c_str(), 0600);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  // The kernel's output for these bytes of ESP.
  void expect(const std::shared_ptr<const KernelDevice>& device, const std::string& kind,
              const std::string& from, const std::string& to) {
    Dict sa = sa_of(1, "aes-128-gcm", {{"esn", true}});
    if (kind == "esp_decrypt") sa.erase("local"), sa.erase("remote");
    Side side(kind, {{"sas", List{sa}}, {"keys", path_.string()}}, 1);
    const auto on_device = device->make_kernel(side.kernel(), 1, nullptr, "devices.x");
    const Bytes esp = bytes_of(from);
    Bytes input(16);
    const uint32_t head[] = {0, static_cast<uint32_t>(esp.size()) - 32, 0x87654321, 0};
    std::memcpy(input.data(), head, sizeof head);
    input.insert(input.end(), esp.begin(), esp.end());
    ASSERT_TRUE(on_device->add(0, input));
    ASSERT_TRUE(on_device->launch(0));
    while (on_device->poll(0) == DeviceKernel::State::kRunning) std::this_thread::yield();
    EXPECT_EQ(on_device->results(0)[0], 1);
    const uint8_t* const made = on_device->rewritten(0, 0).returned + sizeof head;
    EXPECT_EQ(Bytes(made, made + esp.size()), bytes_of(to));
  }
  std::filesystem::path path_;
};

TEST_F(OpenClEspVector, ComesOut) {
  std::string why;
  const auto device = any_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  const std::string front =
      "00004321"
      "00000000"
      "4956ed7e3b244cfe";
  const std::string tag = "459018148f6cbe722fd04796562dfdb4";
  const std::string plain =
      "45000048699a000080114db7c0a80102c0a801010a9bf15638d3010000010000"
      "00000000045f736970045f756470037369700963796265726369747902646b00"
      "0021000101020201";
  const std::string secret =
      "fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34"
      "cfa2436f14a3f3cf65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce"
      "61bc17d768fd9732";
  expect(device, "esp_encrypt", front + plain + std::string(32, '0'), front + secret + tag);
  expect(device, "esp_decrypt", front + secret + tag, front + plain + tag);
}

// Forged packets, replays in the same batch and in the next, other suites, unknown SPIs, and noise.
TEST(OpenClEsp, JudgesPacketsInTheirOrder) {
  std::string why;
  const auto device = any_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  Rng rng(29);
  List sas;
  const char* const suites[] = {"aes-128-gcm", "aes-256-cbc-sha256", "aes-256-gcm",
                                "chacha20-poly1305"};
  for (uint32_t id = 0; id < 8; ++id) sas.push_back(sa_of(id, suites[id % 4], {{"esn", id > 3}}));
  Dict in = receiving(params_of(sas));
  in["replay_window_pkts"] = 64;
  sas.push_back(sa_of(8, "aes-128-gcm"));  // unknown to the other end
  Way out("esp_encrypt", params_of(sas));
  Way here("esp_decrypt", in);
  Way there("esp_decrypt", in);
  there.add_device(device);
  std::vector<Sent> clear(1600);
  for (Sent& one : clear) one = {inner_frame(rng, 60 + rng.below(300), false), rng.below(9)};
  out.run_here(clear);
  const std::vector<Bytes> sent = out.left();
  std::vector<Sent> mixed;
  for (uint32_t batch = 0; batch < 4; ++batch) {
    mixed.clear();
    for (uint32_t i = 0; i < 400; ++i) {
      const uint32_t at = batch * 400 + i;
      Bytes frame = sent[rng.below(5) == 0 ? rng.below(at + 1) : at];
      if (rng.below(8) == 0) frame[14 + rng.below(static_cast<uint32_t>(frame.size()) - 14)] ^= 4;
      if (rng.below(16) == 0)
        frame.resize(14 + rng.below(static_cast<uint32_t>(frame.size()) - 14));
      mixed.push_back({frame, 0});
      if (rng.below(6) == 0) mixed.push_back(mixed[rng.below(static_cast<uint32_t>(mixed.size()))]);
    }
    here.run_here(mixed);
    there.submit(mixed, 0);
  }
  there.finish();
  EXPECT_EQ(here.fates(), there.fates());
  EXPECT_EQ(here.left(), there.left());
  EXPECT_GT(here.left().size(), 600U);
  EXPECT_EQ(here.side.runner.module().command("list", {}),
            there.side.runner.module().command("list", {}));
}

TEST(OpenClEsp, ASuiteThatNoDeviceKnowsIsRefusedWhereThereIsNoOther) {
  for (const std::string kind : {"esp_encrypt", "esp_decrypt"}) {
    Dict params = params_of({sa_of(1, "chacha20-poly1305")});
    if (kind == "esp_decrypt") params = receiving(params);
    Side side(kind, params, 1);
    const std::string line = refusal_of([&] { side.kernel(); });
    EXPECT_NE(line.find("aes-128-gcm, aes-192-gcm, aes-256-gcm"), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
    Dict sa = sa_of(2, "aes-256-gcm");
    if (kind == "esp_decrypt") sa.erase("local"), sa.erase("remote");
    side.runner.module().command("add", sa);
    EXPECT_EQ(side.kernel().entry(), kind);
  }
}

// A table without SAs may get some later: the device computes those.
TEST(OpenClEsp, NoSaAtAllIsNoReasonToRefuse) {
  for (const std::string kind : {"esp_encrypt", "esp_decrypt"}) {
    Side side(kind, params_of({}), 1);
    ASSERT_EQ(side.kernel().entry(), kind);
    const HostDevice device;
    const KernelLane lane(device, side.runner, 64, 1, nullptr, "devices.x");  // passes its trial
    std::vector<uint8_t> bytes(200, 2);
    EXPECT_EQ(side.kernel().rewriting()->write_trial(bytes), 200U) << "it has something to encrypt";
  }
}

}  // namespace opencl_esp_test
}  // namespace batchplane::offload
