// SPDX-License-Identifier: BSD-3-Clause
// prefetch.h - asks for cache lines before they are needed.
//
// Written out: what GCC knows of __builtin_prefetch is that it has no effect, so a function that
// does nothing else is taken for one without a result, and calls of it are left out.
#pragma once

namespace batchplane {

inline void prefetch_for_read(const void* line) {
  asm volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(line)));
}

// Asks for a line in order to write it: it comes over from the other core while something else is
// done. Written out because compilers emit it only for CPUs newer than our least one, which takes
// it for a no-operation.
inline void prefetch_for_write(const void* line) {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
}

}  // namespace batchplane
