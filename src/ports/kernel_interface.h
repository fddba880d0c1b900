// SPDX-License-Identifier: BSD-3-Clause
// kernel_interface.h - what the kernel says about a network interface: presence, state, offloads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/net.h"
#include "base/value.h"

namespace batchplane::ports {

// Names in this network namespace.
std::vector<std::string> interface_names();
// Throws ConfigError that lists those that there are.
void require_interface(const std::string& name, const std::string& where);
// All zero when there is none.
net::Mac interface_mac(const std::string& name);
// 0 when there is none.
uint32_t interface_index(const std::string& name);
// Up, and with a carrier.
bool is_interface_running(const std::string& name);
// 0 when there is none.
uint32_t interface_mtu_bytes(const std::string& name);

// What makes a kernel hand out frames that are not ready for the wire.
struct KernelOffloads {
  bool tx_checksum = false;
  bool tso = false;
  bool gso = false;
  bool gro = false;
  [[nodiscard]] bool any() const { return tx_checksum || tso || gso || gro; }
};
std::optional<KernelOffloads> read_offloads(const std::string& name);
// The other end of a veth pair, when it is in this namespace; empty otherwise.
std::string veth_peer(const std::string& name);
bool is_veth(const std::string& name);

// {own: {...}, peer: NAME, peer_offloads: {...}, finding: "...", remedy: "..."}; the last two are
// empty when all is well.
Dict offload_facts(const std::string& name);

}  // namespace batchplane::ports
