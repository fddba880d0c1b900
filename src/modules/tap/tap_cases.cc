// SPDX-License-Identifier: BSD-3-Clause
// tap_cases.cc - inputs for fuzzing and benchmarking the modules that copy packets.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_tap_costs(std::vector<CostCase>& all) {
  all.push_back(plain("pcap_tap off", "pcap_tap", {{"path", "/dev/null"}, {"is_on", false}}));
  all.push_back(
      plain("pcap_tap 1 in 1000", "pcap_tap", {{"path", "/dev/null"}, {"sample_one_in", 1000}}));
  CostCase off = plain("mirror off", "mirror", {{"is_on", false}});
  off.gates = 2;
  all.push_back(std::move(off));
  CostCase sampled = plain("mirror 1 in 1000000", "mirror", {{"sample_one_in", 1'000'000}});
  sampled.gates = 2;
  sampled.note = "what a copy costs is seen in a pipeline: the rig takes none back";
  all.push_back(std::move(sampled));
}

const AddCases kTapCases{
    {.fuzz = {{"pcap_tap",
               R"({"path": "${TMP}/tap.pcap", "ring_bytes": 65536, "max_file_bytes": 65536})"},
              {"mirror", "{}", 2},
              {"mirror", R"({"sample_one_in": 3, "snap_bytes": 20})", 2},
              {.kind = "local_tap", .params = R"({"name": "bpcases"})", .needs_kernel = true}},
     .cost = add_tap_costs,
     .without = {{"local_tap", Need::kCost, "its cost is that of the kernel's side"},
                 {"local_tap", Need::kGolden, "its packets go to the kernel and come from it"}}}};

}  // namespace
}  // namespace batchplane::cases
