// SPDX-License-Identifier: BSD-3-Clause
// dpdk_port_heap.cc - a build without DPDK has no DPDK ports.
#include "ports/port_kinds.h"

namespace batchplane::ports {

std::vector<PortKindInfo> dpdk_port_kinds() { return {}; }

}  // namespace batchplane::ports
