// SPDX-License-Identifier: BSD-3-Clause
// mapped_memory.h - memory of this machine that GPUs read directly.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "offload/cuda/cuda_context.h"

namespace batchplane::offload::cu {

// Locked in RAM, and visible to all GPUs, until the last owner is gone.
class MappedMemory {
 public:
  // Null if the driver refuses. Memory that is mapped already is shared; it keeps the context by which it was
  // mapped first. The context must be current in the calling thread. Control thread.
  [[nodiscard]] static std::shared_ptr<const MappedMemory> of(
      const Api& api, std::shared_ptr<const Context> context, std::span<uint8_t> memory);
  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  [[nodiscard]] std::span<uint8_t> memory() const { return memory_; }
  // Where the current context's GPU sees it; 0: nowhere.
  [[nodiscard]] Address address() const;

 private:
  MappedMemory(const Api& api, std::shared_ptr<const Context> context, std::span<uint8_t> memory)
      : api_(api), context_(std::move(context)), memory_(memory) {}

  const Api& api_;
  const std::shared_ptr<const Context> context_;
  const std::span<uint8_t> memory_;
};

}  // namespace batchplane::offload::cu
