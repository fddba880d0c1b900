// SPDX-License-Identifier: BSD-3-Clause
// prefetch.h - prefetches of cache lines.
//
// In assembly, because GCC knows that __builtin_prefetch has no effect: a function that does nothing else
// counts as one without a result, and calls to it are removed.
#pragma once

namespace batchplane {

inline void prefetch_for_read(const void* line) {
  asm volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(line)));
}

// Prefetches a line for writing: it is transferred from the other core while this one does something else. In
// assembly because compilers emit it only for CPUs newer than our minimum, which treats it as a no-op.
inline void prefetch_for_write(const void* line) {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
}

}  // namespace batchplane
