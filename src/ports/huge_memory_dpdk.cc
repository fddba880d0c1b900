// SPDX-License-Identifier: BSD-3-Clause
// huge_memory_dpdk.cc - replaces the EAL's shared file pages by private ones, which may become huge.
//
// Without hugepages the EAL maps a memory file. Kernels seldom back such files with huge pages, but do so for
// private memory on request. Therefore a private area is prepared for each mapping, the few pages used so far
// are copied, and it is moved to the old address in one step.
#include "ports/huge_memory.h"

#include <rte_memory.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace batchplane::ports {
namespace {

constexpr uintptr_t kHugeBytes = 2U << 20;

struct Area {
  uint8_t* start;
  size_t bytes;
};

bool is_on_request() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(file, line);
  return line.find("[madvise]") != std::string::npos || line.find("[always]") != std::string::npos;
}

int note_area(const rte_memseg_list* list, void* areas) {
  if (list->external == 0) {
    static_cast<std::vector<Area>*>(areas)->push_back(
        {static_cast<uint8_t*>(list->base_va), list->len});
  }
  return 0;
}

// Memory with the same offset from a huge page boundary as `area`, so that pages stay huge when moved.
uint8_t* reserve_like(const Area& area) {
  void* raw = mmap(nullptr, area.bytes + 2 * kHugeBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t phase = reinterpret_cast<uintptr_t>(area.start) % kHugeBytes;
  uintptr_t at = begin / kHugeBytes * kHugeBytes + phase;
  if (at < begin) at += kHugeBytes;
  const uintptr_t end = begin + area.bytes + 2 * kHugeBytes;
  if (at > begin) munmap(raw, at - begin);
  munmap(reinterpret_cast<void*>(at + area.bytes), end - at - area.bytes);
  return reinterpret_cast<uint8_t*>(at);
}

bool exchange(const Area& area) {
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (area.start == nullptr || area.bytes == 0 || area.bytes % page_bytes != 0) return false;
  std::vector<unsigned char> is_used(area.bytes / page_bytes);
  if (mincore(area.start, area.bytes, is_used.data()) != 0) return false;
  uint8_t* fresh = reserve_like(area);
  if (fresh == nullptr) return false;
  if (madvise(fresh, area.bytes, MADV_HUGEPAGE) != 0) {
    munmap(fresh, area.bytes);
    return false;
  }
  for (size_t page = 0; page < is_used.size(); ++page) {
    if ((is_used[page] & 1) == 0) continue;
    std::memcpy(fresh + page * page_bytes, area.start + page * page_bytes, page_bytes);
  }
  if (mremap(fresh, area.bytes, area.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, area.start) ==
      MAP_FAILED) {
    munmap(fresh, area.bytes);
    return false;
  }
  return true;
}

}  // namespace

bool ask_for_huge_memory() {
  if (!is_on_request()) return false;
  std::vector<Area> areas;
  rte_memseg_list_walk(note_area, &areas);
  bool any = false;
  for (const Area& area : areas) any |= exchange(area);
  return any;
}

}  // namespace batchplane::ports
