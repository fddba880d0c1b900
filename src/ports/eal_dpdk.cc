// SPDX-License-Identifier: BSD-3-Clause
// eal_dpdk.cc - initialises DPDK's EAL with the resources of this machine and user.
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_version.h>
#include <sched.h>

#include <fstream>
#include <sstream>

// This DPDK header lacks its own extern "C".
extern "C" {
#include <rte_vect.h>
}

#include "base/error.h"
#include "ports/eal.h"
#include "ports/huge_memory.h"

namespace batchplane::ports {
namespace {

uint64_t meminfo(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key + ":")) continue;
    return std::stoull(line.substr(key.size() + 1));
  }
  return 0;
}

bool has_free_hugepages(uint32_t memory_mb) {
  return meminfo("HugePages_Free") * meminfo("Hugepagesize") / 1024 >= memory_mb;
}

bool has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

// The main thread keeps its affinity; our other threads are pinned by whoever starts them.
std::string lcores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::string cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    cpus.append(cpus.empty() ? "" : ",").append(std::to_string(cpu));
  }
  std::string argument = "--lcores=0@(";
  argument += cpus;
  return argument += ")";
}

std::vector<std::string> arguments(const EalOptions& options, bool has_hugepages) {
  std::vector<std::string> args = {"batchplane",   "--no-shconf", "--no-telemetry",
                                   lcores(),       "-m",          std::to_string(options.memory_mb),
                                   "--log-level=4"};
  args.emplace_back(has_hugepages ? "--in-memory" : "--no-huge");
  if (options.pci_devices.empty()) args.emplace_back("--no-pci");
  for (const std::string& device : options.pci_devices) args.insert(args.end(), {"-a", device});
  if (has_avx512()) args.emplace_back("--force-max-simd-bitwidth=512");
  args.insert(args.end(), options.extra.begin(), options.extra.end());
  return args;
}

}  // namespace

EalFacts start_eal(const EalOptions& options) {
  const bool has_hugepages = options.may_use_hugepages && has_free_hugepages(options.memory_mb);
  if (!options.pci_devices.empty() && !has_hugepages) {
    throw ConfigError("PCI devices need " + std::to_string(options.memory_mb) +
                          " MB of hugepages, and that many are not free",
                      "ports",
                      "sysctl -w vm.nr_hugepages=" + std::to_string(options.memory_mb / 2 + 64));
  }
  std::vector<std::string> args = arguments(options, has_hugepages);
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
    throw ConfigError("DPDK does not start with " + std::to_string(options.memory_mb) +
                          " MB: " + rte_strerror(rte_errno),
                      "engine", "give it less memory (--memory-mb), or free some");
  }
  EalFacts facts{.has_hugepages = has_hugepages,
                 .simd_bits = rte_vect_get_max_simd_bitwidth(),
                 .version = rte_version()};
  if (has_hugepages) {
    facts.memory = "hugepages of " + std::to_string(meminfo("Hugepagesize") / 1024) + " MB";
  } else {
    facts.memory = ask_for_huge_memory() ? "transparent hugepages (none reserved)"
                                         : "4 KB pages (no hugepages)";
  }
  return facts;
}

void stop_eal() { rte_eal_cleanup(); }

}  // namespace batchplane::ports
