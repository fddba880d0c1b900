// SPDX-License-Identifier: BSD-3-Clause
// eal.h - brings up what packets need before anything else: memory and, with DPDK, its environment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace batchplane::ports {

struct EalOptions {
  uint32_t memory_mb = 512;              // pools, rings and tables
  bool may_use_hugepages = true;         // where enough of them are free
  std::vector<std::string> pci_devices;  // allowed devices; none: the PCI bus is left alone
  std::vector<std::string> extra;        // further arguments, as they are
};

struct EalFacts {
  std::string memory;  // one line for people: "hugepages of 2 MB", ...
  bool has_hugepages = false;
  uint32_t simd_bits = 256;  // widest vectors that libraries may use
  std::string version;       // of DPDK; empty without it
};

// Once per process, on the control thread, before any pool, table or port is made. Throws
// ConfigError.
EalFacts start_eal(const EalOptions& options);
// After everything that came from it is gone.
void stop_eal();

}  // namespace batchplane::ports
