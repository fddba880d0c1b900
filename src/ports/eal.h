// SPDX-License-Identifier: BSD-3-Clause
// eal.h - initialises the memory for packets and, with DPDK, its EAL.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace batchplane::ports {

struct EalOptions {
  uint32_t memory_mb = 512;              // pools, rings and tables
  bool may_use_hugepages = true;         // if enough of them are free
  std::vector<std::string> pci_devices;  // allowed devices; empty: the PCI bus is not scanned
  std::vector<std::string> extra;        // further arguments, unchanged
};

struct EalFacts {
  std::string memory;  // one line for people: "hugepages of 2 MB", ...
  bool has_hugepages = false;
  uint32_t simd_bits = 256;  // widest vectors that libraries may use
  std::string version;       // of DPDK; empty without it
};

// Once per process, on the control thread, before any pool, table or port is made. Throws ConfigError.
EalFacts start_eal(const EalOptions& options);
// Call after everything that uses its memory has been destroyed.
void stop_eal();

}  // namespace batchplane::ports
