// SPDX-License-Identifier: BSD-3-Clause
// kernel_interface.cc - asks the kernel about interfaces, through ioctl on a socket.
#include "ports/kernel_interface.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"

namespace batchplane::ports {
namespace {

class ControlSocket {
 public:
  ControlSocket() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~ControlSocket() {
    if (fd_ >= 0) close(fd_);
  }
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  bool ask(unsigned long request, const std::string& name, ifreq& answer) const {
    if (fd_ < 0 || name.empty() || name.size() >= IFNAMSIZ) return false;
    std::memcpy(answer.ifr_name, name.c_str(), name.size() + 1);
    return ioctl(fd_, request, &answer) == 0;
  }
  bool ethtool(const std::string& name, void* command) const {
    ifreq request{};
    request.ifr_data = static_cast<char*>(command);
    return ask(SIOCETHTOOL, name, request);
  }
  [[nodiscard]] std::optional<bool> flag(const std::string& name, uint32_t command) const {
    ethtool_value value{.cmd = command, .data = 0};
    if (!ethtool(name, &value)) return std::nullopt;
    return value.data != 0;
  }

 private:
  int fd_;
};

// One of the driver's statistics; nothing when it has none of that name.
std::optional<uint64_t> driver_statistic(const std::string& name, const std::string& wanted) {
  const ControlSocket socket;
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  if (!socket.ethtool(name, &info) || info.n_stats == 0) return std::nullopt;
  std::vector<uint64_t> names((sizeof(ethtool_gstrings) + info.n_stats * ETH_GSTRING_LEN) / 8 + 1);
  auto* strings = reinterpret_cast<ethtool_gstrings*>(names.data());
  strings->cmd = ETHTOOL_GSTRINGS;
  strings->string_set = ETH_SS_STATS;
  strings->len = info.n_stats;
  std::vector<uint64_t> values(sizeof(ethtool_stats) / 8 + info.n_stats + 1);
  auto* stats = reinterpret_cast<ethtool_stats*>(values.data());
  stats->cmd = ETHTOOL_GSTATS;
  stats->n_stats = info.n_stats;
  if (!socket.ethtool(name, strings) || !socket.ethtool(name, stats)) return std::nullopt;
  for (uint32_t i = 0; i < info.n_stats; ++i) {
    const char* label = reinterpret_cast<const char*>(strings->data) + i * ETH_GSTRING_LEN;
    if (std::string(label, strnlen(label, ETH_GSTRING_LEN)) == wanted) return stats->data[i];
  }
  return std::nullopt;
}

Dict as_dict(const KernelOffloads& offloads) {
  return {{"tx_checksum", offloads.tx_checksum},
          {"tso", offloads.tso},
          {"gso", offloads.gso},
          {"gro", offloads.gro}};
}

std::string switch_off(const std::string& name) {
  return "ethtool -K " + name + " tx off tso off gso off gro off";
}

}  // namespace

std::vector<std::string> interface_names() {
  std::vector<std::string> names;
  struct if_nameindex* list = if_nameindex();
  if (list == nullptr) return names;
  for (const auto* entry = list; entry->if_index != 0; ++entry) names.emplace_back(entry->if_name);
  if_freenameindex(list);
  return names;
}

uint32_t interface_index(const std::string& name) { return if_nametoindex(name.c_str()); }

void require_interface(const std::string& name, const std::string& where) {
  if (interface_index(name) != 0) return;
  std::string names;
  for (const std::string& known : interface_names()) names += (names.empty() ? "" : ", ") + known;
  throw ConfigError("there is no network interface '" + name + "'", where,
                    "in this network namespace there are: " + names);
}

net::Mac interface_mac(const std::string& name) {
  const ControlSocket socket;
  ifreq answer{};
  net::Mac mac{};
  if (socket.ask(SIOCGIFHWADDR, name, answer))
    std::memcpy(mac.data(), answer.ifr_hwaddr.sa_data, 6);
  return mac;
}

bool is_interface_running(const std::string& name) {
  ifreq request{};
  if (!ControlSocket().ask(SIOCGIFFLAGS, name, request)) return false;
  const auto flags = static_cast<uint32_t>(request.ifr_flags);
  return (flags & IFF_UP) != 0 && (flags & IFF_RUNNING) != 0;
}

uint32_t interface_mtu_bytes(const std::string& name) {
  ifreq request{};
  return ControlSocket().ask(SIOCGIFMTU, name, request) ? static_cast<uint32_t>(request.ifr_mtu)
                                                        : 0;
}

std::optional<KernelOffloads> read_offloads(const std::string& name) {
  const ControlSocket socket;
  const auto tx = socket.flag(name, ETHTOOL_GTXCSUM);
  const auto tso = socket.flag(name, ETHTOOL_GTSO);
  const auto gso = socket.flag(name, ETHTOOL_GGSO);
  const auto gro = socket.flag(name, ETHTOOL_GGRO);
  if (!tx && !tso && !gso && !gro) return std::nullopt;
  return KernelOffloads{.tx_checksum = tx.value_or(false),
                        .tso = tso.value_or(false),
                        .gso = gso.value_or(false),
                        .gro = gro.value_or(false)};
}

bool is_veth(const std::string& name) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  return ControlSocket().ethtool(name, &info) &&
         std::strncmp(info.driver, "veth", sizeof(info.driver)) == 0;
}

// An index is valid only in its own namespace: the peer must name us in return.
std::string veth_peer(const std::string& name) {
  const auto index = driver_statistic(name, "peer_ifindex");
  char peer[IFNAMSIZ] = "";
  if (!index || if_indextoname(static_cast<uint32_t>(*index), peer) == nullptr) return "";
  const auto back = driver_statistic(peer, "peer_ifindex");
  return back && *back == interface_index(name) ? peer : "";
}

Dict offload_facts(const std::string& name) {
  Dict facts = {{"finding", ""}, {"remedy", ""}};
  const auto own = read_offloads(name);
  if (!own) return facts;
  facts["own"] = as_dict(*own);
  const std::string peer = veth_peer(name);
  facts["peer"] = peer;
  if (own->gro || own->tx_checksum || own->tso || own->gso) {
    facts["finding"] =
        "the kernel may hand over merged frames, or frames without checksums, at " + name;
    facts["remedy"] = switch_off(name);
  }
  if (!is_veth(name)) return facts;
  if (peer.empty()) {
    facts["finding"] =
        "the other end of " + name +
        " is in another namespace: its kernel may leave checksums to the device, and "
        "send segments of 64 KB";
    facts["remedy"] = "there: ethtool -K INTERFACE tx off tso off gso off gro off";
    return facts;
  }
  const auto other = read_offloads(peer);
  if (!other) return facts;
  facts["peer_offloads"] = as_dict(*other);
  if (other->any()) {
    facts["finding"] = "the kernel at " + peer + " leaves checksums or segmentation to the device";
    facts["remedy"] = switch_off(peer);
  }
  return facts;
}

}  // namespace batchplane::ports
