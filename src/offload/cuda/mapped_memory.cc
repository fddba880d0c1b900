// SPDX-License-Identifier: BSD-3-Clause
// mapped_memory.cc - the driver maps a piece of memory once only, so devices that lie on one GPU share it.
#include "offload/cuda/mapped_memory.h"

#include <map>
#include <mutex>

namespace batchplane::offload::cu {
namespace {

struct Known {
  std::mutex mutex;
  std::map<const uint8_t*, std::weak_ptr<const MappedMemory>> by_begin;
};

Known& known() {
  static Known all;
  return all;
}

}  // namespace

std::shared_ptr<const MappedMemory> MappedMemory::of(const Api& api,
                                                     std::shared_ptr<const Context> context,
                                                     std::span<uint8_t> memory) {
  const std::scoped_lock lock(known().mutex);
  auto& entry = known().by_begin[memory.data()];
  if (auto mapped = entry.lock(); mapped != nullptr) {
    return mapped->memory().size() == memory.size() ? mapped : nullptr;
  }
  const auto is_registered = [&](uint32_t more) {
    const uint32_t flags = kRegisterForAll | kRegisterMapped | more;
    return api.host_register(memory.data(), memory.size(), flags) == kSuccess;
  };
  if (!is_registered(kRegisterReadOnly) && !is_registered(0)) return nullptr;
  std::shared_ptr<const MappedMemory> mapped(new MappedMemory(api, std::move(context), memory));
  entry = mapped;
  return mapped;
}

MappedMemory::~MappedMemory() {
  (void)context_->use();
  api_.host_unregister(memory_.data());
}

Address MappedMemory::address() const {
  Address at = 0;
  return api_.host_address(&at, memory_.data(), 0) == kSuccess ? at : 0;
}

}  // namespace batchplane::offload::cu
