// SPDX-License-Identifier: BSD-3-Clause
// local_tap_test.cc - a TAP interface in its own network namespace: both directions, against kernel
// sockets.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "module_harness.h"
#include "modules/tap/kernel_tap.h"

namespace batchplane {
namespace {

constexpr uint16_t kPort = 7777;
const Dict kParams{{"name", "bptest0"}, {"address", "10.9.0.1/24"}};

// Runs `body` on a thread in a new network namespace; returns false where that is not permitted.
bool in_namespace(const std::function<void()>& body) {
  bool is_allowed = false;
  std::thread([&] {
    is_allowed = ::unshare(CLONE_NEWNET) == 0 && ::access("/dev/net/tun", R_OK | W_OK) == 0;
    if (is_allowed) body();
  }).join();
  return is_allowed;
}

int udp_socket() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  const timeval patience{5, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_port = htons(kPort);
  own.sin_addr.s_addr = htonl(0x0a090001);
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
  return fd;
}

TEST(LocalTap, CarriesPacketsBothWays) {
  const bool is_allowed = in_namespace([] {
    ModuleHarness tap("local_tap", kParams);
    const int fd = udp_socket();
    Bytes frame = make_frame({.ip_src = 0x0a090002,
                              .ip_dst = 0x0a090001,
                              .port_src = 99,
                              .port_dst = kPort,
                              .len_bytes = 14 + 20 + 8 + 5});
    std::memcpy(&frame[42], "hello", 5);
    net::store16(&frame[40], 0);  // no UDP checksum
    EXPECT_EQ(tap.run({frame}).consumed_pkts, 1U);
    char text[16] = {};
    EXPECT_EQ(::recv(fd, text, sizeof text, 0), 5);
    EXPECT_STREQ(text, "hello");

    sockaddr_in host{};
    host.sin_family = AF_INET;
    host.sin_port = htons(99);
    host.sin_addr.s_addr = htonl(0x0a090002);
    EXPECT_EQ(::sendto(fd, "back", 4, 0, reinterpret_cast<sockaddr*>(&host), sizeof host), 4);
    Packet* pkt = nullptr;
    // Only reached if the frame never arrives.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    bool is_found = false;
    while (!is_found && std::chrono::steady_clock::now() < deadline) {
      if (tap.info().poll(tap.module(), tap.ctx(), &pkt, 1) == 0) {
        std::this_thread::yield();
        continue;
      }
      is_found = pkt->len_bytes() == 46 && net::load32(pkt->data() + 30) == 0x0a090002 &&
                 std::memcmp(pkt->data() + 42, "back", 4) == 0;
      EXPECT_EQ(pkt->meta().in_interface, kNoInterface);
      tap.ctx().free(pkt);
    }
    EXPECT_TRUE(is_found);
    EXPECT_GE(tap.module().show()["arp_answers"].as_int(), 1);
    EXPECT_EQ(tap.leaked_pkts(), 0U);
    ::close(fd);
  });
  if (!is_allowed) GTEST_SKIP() << "needs CAP_NET_ADMIN and /dev/net/tun";
}

TEST(LocalTap, ShortAndLongPacketsAreDropped) {
  const bool is_allowed = in_namespace([] {
    ModuleHarness tap("local_tap", kParams, 1, nullptr, 4096);
    const Bytes frame = make_frame({.len_bytes = 14 + 1500});
    EXPECT_EQ(tap.run({frame}).consumed_pkts, 1U);
    EXPECT_EQ(tap.run({make_frame({.len_bytes = 14 + 1501})}).dropped_for("tap_too_long"), 1U);
    for (uint32_t len = 0; len < 34; ++len) {
      EXPECT_EQ(tap.run({Bytes(frame.begin(), frame.begin() + len)}).dropped_for("too_short"), 1U);
    }
  });
  if (!is_allowed) GTEST_SKIP() << "needs CAP_NET_ADMIN and /dev/net/tun";
}

TEST(LocalTap, NewGraphSharesTheDevice) {
  const bool is_allowed = in_namespace([] {
    const KernelTapConfig config{.name = "bptest1", .mac = {2, 0, 0, 0, 0, 1}};
    const auto first = KernelTap::open(config);
    EXPECT_EQ(KernelTap::open(config), first);
  });
  if (!is_allowed) GTEST_SKIP() << "needs CAP_NET_ADMIN and /dev/net/tun";
}

TEST(LocalTap, BadParametersAreRefusedBeforeAnythingIsOpened) {
  Environment env;
  env.is_check = true;
  EXPECT_THROW(ModuleHarness("local_tap", {{"name", "much-too-long-name"}}, 1, &env), ConfigError);
  EXPECT_THROW(ModuleHarness("local_tap", {{"address", "10.0.0.1"}}, 1, &env), ConfigError);
  EXPECT_THROW(ModuleHarness("local_tap", {{"mac", "ff:ff:ff:ff:ff:ff"}}, 1, &env), ConfigError);
  EXPECT_NO_THROW(ModuleHarness("local_tap", kParams, 1, &env));
}

}  // namespace
}  // namespace batchplane
