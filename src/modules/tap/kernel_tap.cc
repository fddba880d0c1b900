// SPDX-License-Identifier: BSD-3-Clause
// kernel_tap.cc - opens and configures a TAP interface, and moves frames between it and two rings.
#include "modules/tap/kernel_tap.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "base/error.h"
#include "modules/headers/arp.h"

namespace batchplane {
namespace {

constexpr uint32_t kRingFrames = 256;  // half a megabyte each
constexpr int kBurst = 32;
// Workers cannot wake the thread without a system call, so it polls at this interval.
constexpr int kIdleMs = 1;

std::map<std::string, std::weak_ptr<KernelTap>>& open_taps() {
  static std::map<std::string, std::weak_ptr<KernelTap>> taps;
  return taps;
}

ifreq request_for(const std::string& name) {
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), std::min<size_t>(name.size(), IFNAMSIZ - 1));
  return request;
}

class ControlSocket {
 public:
  ControlSocket() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~ControlSocket() { ::close(fd_); }
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  void call(unsigned long what, ifreq& request, const char* doing) const {
    if (::ioctl(fd_, what, &request) == 0) return;
    throw ConfigError("cannot set the " + std::string(doing) + " of " + request.ifr_name + ": " +
                          std::strerror(errno),
                      "", "run as root, or with CAP_NET_ADMIN in this network namespace");
  }

 private:
  int fd_;
};

void set_address(ifreq& request, uint32_t address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = net::be32(address);
  std::memcpy(&request.ifr_addr, &in, sizeof in);
}

}  // namespace

std::shared_ptr<KernelTap> KernelTap::open(const KernelTapConfig& config) {
  std::weak_ptr<KernelTap>& known = open_taps()[config.name];
  std::shared_ptr<KernelTap> tap = known.lock();
  if (tap != nullptr) {
    tap->configure(config);
    return tap;
  }
  tap.reset(new KernelTap(config));
  known = tap;
  return tap;
}

KernelTap::KernelTap(const KernelTapConfig& config)
    : name_(config.name), to_kernel_(kRingFrames), from_kernel_(kRingFrames) {
  fd_ = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd_ < 0) {
    throw ConfigError("cannot open /dev/net/tun: " + std::string(std::strerror(errno)), "",
                      errno == ENOENT ? "load the module: modprobe tun" : "run as root");
  }
  ifreq request = request_for(config.name);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (::ioctl(fd_, TUNSETIFF, &request) != 0) {
    const int error = errno;
    ::close(fd_);
    throw ConfigError(
        "cannot make the TAP interface " + config.name + ": " + std::strerror(error), "",
        error == EBUSY ? "another process has it: choose another name"
                       : "run as root, or with CAP_NET_ADMIN in this network namespace; a daemon "
                         "that began without taps has given it up: stop it, and start this one");
  }
  try {
    configure(config);
  } catch (...) {
    ::close(fd_);
    throw;
  }
  thread_ = std::thread([this] { serve(); });
}

KernelTap::~KernelTap() {
  is_stopping_ = true;
  thread_.join();
  ::close(fd_);
}

void KernelTap::configure(const KernelTapConfig& config) {
  const ControlSocket control;
  ifreq request = request_for(name_);
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  std::memcpy(request.ifr_hwaddr.sa_data, config.mac.data(), 6);
  control.call(SIOCSIFHWADDR, request, "MAC address");
  request = request_for(name_);
  request.ifr_mtu = static_cast<int>(config.mtu_bytes);
  control.call(SIOCSIFMTU, request, "MTU");
  if (config.has_address) {
    request = request_for(name_);
    set_address(request, config.address.address);
    control.call(SIOCSIFADDR, request, "address");
    set_address(request, net::mask4(config.address.length));
    control.call(SIOCSIFNETMASK, request, "netmask");
  }
  request = request_for(name_);
  control.call(SIOCGIFFLAGS, request, "state");
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  control.call(SIOCSIFFLAGS, request, "state");
}

void KernelTap::serve() {
  while (!is_stopping_.load(std::memory_order_relaxed)) {
    const bool has_written = write_some();
    const bool has_read = read_some();
    if (has_written || has_read) continue;
    pollfd waited{fd_, POLLIN, 0};
    // While our ring is full, frames wait in the kernel, and this only sleeps.
    ::poll(&waited, from_kernel_.free_slots() == 0 ? 0 : 1, kIdleMs);
  }
}

bool KernelTap::write_some() {
  return to_kernel_.consume(kBurst, [this](uint32_t, const Frame& frame) {
    const bool is_taken =
        ::write(fd_, frame.data, frame.len_bytes) == static_cast<ssize_t>(frame.len_bytes);
    (is_taken ? to_kernel_pkts_ : refused_pkts_).fetch_add(1, std::memory_order_relaxed);
  }) != 0;
}

bool KernelTap::read_some() {
  bool any = false;
  for (int i = 0; i < kBurst && from_kernel_.free_slots() != 0; ++i) {
    uint8_t buffer[kMaxFrameBytes];
    const ssize_t n = ::read(fd_, buffer, sizeof buffer);
    if (n <= 0) break;
    any = true;
    const auto len = static_cast<uint32_t>(n);
    const uint16_t type =
        len >= net::kEthBytes ? uint16_t{header_at<net::Ethernet>(buffer).type} : 0;
    if (type == net::kTypeIpv4) {
      from_kernel_.produce(1, [&](uint32_t, Frame& frame) {
        frame.len_bytes = len;
        std::memcpy(frame.data, buffer, len);
      });
      from_kernel_pkts_.fetch_add(1, std::memory_order_relaxed);
    } else if (type != net::kTypeArp || !answer_arp(buffer, len)) {
      ignored_pkts_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  return any;
}

// Answers for every address but the sender's own: they are all behind the router.
bool KernelTap::answer_arp(uint8_t* frame, uint32_t len_bytes) {
  auto& message = header_at<net::Arp>(frame + net::kEthBytes);
  if (!arp::is_valid(message, len_bytes - net::kEthBytes)) return false;
  const uint32_t sender = message.sender_ip;
  const uint32_t target = message.target_ip;
  if (message.operation != arp::kRequest || sender == target || sender == 0) return false;
  const net::Mac asker = message.sender_mac;
  arp::write_eth(frame, asker, peer_mac(), net::kTypeArp);
  arp::write_message(message, arp::kReply, peer_mac(), target, asker, sender);
  if (::write(fd_, frame, len_bytes) < 0) return false;
  arp_answers_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

KernelTapStats KernelTap::stats() const {
  return {.to_kernel_pkts = to_kernel_pkts_.load(),
          .refused_pkts = refused_pkts_.load(),
          .from_kernel_pkts = from_kernel_pkts_.load(),
          .ignored_pkts = ignored_pkts_.load(),
          .arp_answers = arp_answers_.load()};
}

}  // namespace batchplane
