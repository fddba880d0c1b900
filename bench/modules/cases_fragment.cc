// SPDX-License-Identifier: BSD-3-Clause
// cases_fragment.cc - what packets cost that need neither cutting nor putting together.
#include "modules/case_tools.h"
#include "modules/cases.h"

namespace bench {
namespace {

const AddCases kAdded{[](std::vector<ModuleCase>& all) {
  all.push_back(plain("fragment, packets that fit", "fragment", {{"mtu_bytes", 1500}}));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) { return expect_good_sum(pkt); };
  all.push_back(plain("reassembly, whole packets", "reassembly"));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) { return expect_good_sum(pkt); };
}};

}  // namespace
}  // namespace bench
