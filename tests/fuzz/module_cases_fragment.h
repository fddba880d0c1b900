// SPDX-License-Identifier: BSD-3-Clause
// module_cases_fragment.h - what cuts packets and puts them together, as fuzz_modules runs it.
#pragma once

#include "module_case.h"

namespace batchplane::fuzz {

inline const ModuleCase kFragmentCases[] = {
    {"fragment", R"({"mtu_bytes": 68})"},
    {"fragment", R"({"table": "main", "mtu_bytes": 576})"},
    {"reassembly", R"({"max_datagrams": 4, "max_hold_pkts": 16, "timeout_ns": 1000000000})"},
    {"reassembly", R"({"max_datagram_bytes": 576, "max_hold_pkts": 4})"},
};

}  // namespace batchplane::fuzz
