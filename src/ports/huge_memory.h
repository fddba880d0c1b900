// SPDX-License-Identifier: BSD-3-Clause
// huge_memory.h - large pages for DPDK's memory where none are reserved.
#pragma once

namespace batchplane::ports {

// Call right after the EAL's initialisation in a process without hugepages: lets the kernel back its memory
// with transparent huge pages. False when this is not possible here; nothing has changed then.
bool ask_for_huge_memory();

}  // namespace batchplane::ports
