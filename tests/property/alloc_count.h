// SPDX-License-Identifier: BSD-3-Clause
// alloc_count.h - how often the calling thread has allocated; counted by no_alloc_test.cc.
#pragma once

#include <cstdint>

namespace batchplane::property {

// Of this thread alone: writers of capture files and the like allocate as they please.
uint64_t allocations_here();

}  // namespace batchplane::property
