// SPDX-License-Identifier: BSD-3-Clause
// main.cc - runs GoogleTest; with DPDK, after bringing up an EAL that needs neither root nor
// hugepages.
#include <gtest/gtest.h>

#if BATCHPLANE_DPDK
#include <rte_eal.h>
#include <rte_log.h>
#endif

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
#if BATCHPLANE_DPDK
  const char* eal[] = {
      "test", "--no-huge", "--no-shconf",  "--no-telemetry", "--no-pci",
      "-m",   "1024",      "--lcores=0@0", "--log-level=4",  "--force-max-simd-bitwidth=512"};
  if (rte_eal_init(static_cast<int>(std::size(eal)), const_cast<char**>(eal)) < 0) return 2;
#endif
  return RUN_ALL_TESTS();
}
