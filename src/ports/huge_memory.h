// SPDX-License-Identifier: BSD-3-Clause
// huge_memory.h - large pages for DPDK's memory where none are reserved.
#pragma once

namespace batchplane::ports {

// Right after the start of the EAL, on a process without hugepages: lets the kernel back its memory
// with transparent ones. False when it does not do so here; nothing has changed then.
bool ask_for_huge_memory();

}  // namespace batchplane::ports
