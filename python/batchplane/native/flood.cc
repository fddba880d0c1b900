// SPDX-License-Identifier: BSD-3-Clause
// flood.cc - threads that send short datagrams as fast as the kernel takes them.
#include "flood.h"

#include <arpa/inet.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace batchplane::native {
namespace {

namespace nb = nanobind;

constexpr size_t kPayloadBytes = 18;  // 60 bytes with UDP, IPv4 and Ethernet headers
constexpr size_t kAtOnce = 32;

class Sender {
 public:
  Sender(const std::string& address, uint16_t port) : fd_(socket(AF_INET, SOCK_DGRAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) {
      throw std::invalid_argument("no IPv4 address: " + address);
    }
    if (fd_ < 0 || connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
      throw std::system_error(errno, std::generic_category(), address);
    }
  }
  ~Sender() { close(fd_); }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // Datagrams that the kernel took.
  uint64_t run(const std::atomic<bool>& must_stop) const {
    std::array<uint8_t, kPayloadBytes> payload{};
    iovec part{payload.data(), payload.size()};
    std::array<mmsghdr, kAtOnce> messages{};
    for (mmsghdr& message : messages) {
      message.msg_hdr.msg_iov = &part;
      message.msg_hdr.msg_iovlen = 1;
    }
    uint64_t taken = 0;
    while (!must_stop.load(std::memory_order_relaxed)) {
      const int n = sendmmsg(fd_, messages.data(), kAtOnce, 0);
      if (n > 0) taken += static_cast<uint64_t>(n);
    }
    return taken;
  }

 private:
  int fd_;
};

// A thread for each port; returns what was taken of each.
std::vector<uint64_t> udp_flood(const std::string& address, const std::vector<uint16_t>& ports,
                                uint64_t run_ns) {
  std::vector<std::unique_ptr<Sender>> senders;
  for (const uint16_t port : ports) senders.push_back(std::make_unique<Sender>(address, port));
  std::vector<uint64_t> taken(ports.size());
  const nb::gil_scoped_release released;
  std::atomic<bool> must_stop{false};
  std::vector<std::thread> threads;
  for (size_t k = 0; k < senders.size(); ++k) {
    threads.emplace_back([&, k] { taken[k] = senders[k]->run(must_stop); });
  }
  std::this_thread::sleep_for(std::chrono::nanoseconds(run_ns));
  must_stop.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads) thread.join();
  return taken;
}

}  // namespace

void add_flood(nb::module_& m) {
  m.def("udp_flood", &udp_flood, nb::arg("address"), nb::arg("ports"), nb::arg("run_ns"));
}

}  // namespace batchplane::native
