// SPDX-License-Identifier: BSD-3-Clause
#include "common/environment.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "base/pin_thread.h"
#include "core/graph/graph.h"

namespace bench {
namespace {

int advise(const rte_memseg_list* list, void* /*arg*/) {
  madvise(list->base_va, list->len, MADV_HUGEPAGE);
  return 0;
}

}  // namespace

void set_up(uint32_t memory_mb, int core) {
  const std::string memory = std::to_string(memory_mb);
  const std::string lcores = "0@" + std::to_string(core);
  std::vector<const char*> eal{"bench",        "--no-huge",    "--no-shconf",  "--no-telemetry",
                               "--no-pci",     "-m",           memory.c_str(), "--lcores",
                               lcores.c_str(), "--log-level=4"};
  if (__builtin_cpu_supports("avx512f") != 0) eal.push_back("--force-max-simd-bitwidth=512");
  if (rte_eal_init(static_cast<int>(eal.size()), const_cast<char**>(eal.data())) < 0) {
    std::fprintf(stderr, "EAL does not start: %s\n", rte_strerror(rte_errno));
    std::exit(1);
  }
  rte_memseg_list_walk(advise, nullptr);
  if (!batchplane::pin_this_thread(core)) {
    std::fprintf(stderr, "core %d cannot be had\n", core);
    std::exit(1);
  }
}

int guarded(const std::function<int()>& benchmark) {
  try {
    return benchmark();
  } catch (const batchplane::ConfigErrors& e) {
    for (const auto& error : e.errors) std::fprintf(stderr, "%s\n", error.line().c_str());
  } catch (const batchplane::ConfigError& e) {
    std::fprintf(stderr, "%s\n", e.line().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  return 1;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string family;
  std::string model;
  std::string name;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) name = value;
    if (line.starts_with("cpu family")) family = value;
    if (line.starts_with("model\t")) model = value;
  }
  return name + " (family " + family + " model " + model + ")";
}

}  // namespace bench
