// SPDX-License-Identifier: BSD-3-Clause
// kernel_interface.h - the kernel's information about network interfaces: presence, state, offloads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/net.h"
#include "base/value.h"

namespace batchplane::ports {

// Names of the interfaces in this network namespace.
std::vector<std::string> interface_names();
// Throws ConfigError that lists the existing interfaces.
void require_interface(const std::string& name, const std::string& where);
// All zero when there is no such interface.
net::Mac interface_mac(const std::string& name);
// 0 when there is no such interface.
uint32_t interface_index(const std::string& name);
// Up, with carrier.
bool is_interface_running(const std::string& name);
// 0 when there is no such interface.
uint32_t interface_mtu_bytes(const std::string& name);

// Offloads because of which a kernel hands over frames that are not ready for the wire.
struct KernelOffloads {
  bool tx_checksum = false;
  bool tso = false;
  bool gso = false;
  bool gro = false;
  [[nodiscard]] bool any() const { return tx_checksum || tso || gso || gro; }
};
std::optional<KernelOffloads> read_offloads(const std::string& name);
// The other end of a veth pair if it is in this namespace; otherwise empty.
std::string veth_peer(const std::string& name);
bool is_veth(const std::string& name);

// {own: {...}, peer: NAME, peer_offloads: {...}, finding: "...", remedy: "..."}; the last two are empty when
// there is no problem.
Dict offload_facts(const std::string& name);

}  // namespace batchplane::ports
