// SPDX-License-Identifier: BSD-3-Clause
// kernel.h - what of a module's work a device with memory of its own can do: a result of fixed size for each
// packet, made of a part of its bytes and of a table that is there already.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "core/module/context.h"

namespace batchplane {

// What a kernel reads beside packets, such as rules or weights. It never changes: an edit makes another, with
// another number.
class KernelTable {
 public:
  virtual ~KernelTable() = default;
  KernelTable() = default;
  KernelTable(const KernelTable&) = delete;
  KernelTable& operator=(const KernelTable&) = delete;

  [[nodiscard]] uint64_t number() const {
    return number_;
  }  // from 1; no two of a process have the same
  // As the device gets it. Control thread.
  [[nodiscard]] virtual std::vector<uint32_t> words() const = 0;
  // Of a packet's input no more than this counts.
  [[nodiscard]] virtual uint32_t most_input_bytes() const { return ~0U; }
  // Room that a work item has for itself.
  [[nodiscard]] virtual uint32_t scratch_words() const { return 0; }

 private:
  inline static std::atomic<uint64_t> last_number_{0};
  const uint64_t number_ = ++last_number_;
};

// One source in OpenCL C 1.2: as it is, and in NVIDIA's PTX, which is empty where the build had no compiler
// for it.
struct KernelSource {
  const char* opencl;
  const char* ptx;
};

// The module's function is compute() and then apply(); a device takes the place of compute().
// Module::kernel() throws ConfigError where a parameter of the module is in the way.
class Kernel {
 public:
  using Input = std::span<const uint8_t>;

  virtual ~Kernel() = default;

  // `__kernel void entry(__global const uint* bytes, __global const uint2* places, uint n,
  // __global uint* results)`. Work item i < n finds its input at byte places[i].x, a multiple of 4, with
  // places[i].y bytes, and writes result_bytes() at results + i * result_bytes() / 4. Where there is a table,
  // two more: `__global const uint* table, __global uint* scratch`, with scratch_words() for each work item of
  // each group: those of group g begin at g * get_local_size(0) * scratch_words().
  [[nodiscard]] virtual KernelSource source() const = 0;
  [[nodiscard]] virtual const char* entry() const = 0;
  [[nodiscard]] virtual uint32_t result_bytes() const = 0;  // a multiple of 8

  // The part of the packet that goes to the device.
  [[nodiscard]] virtual Input input_of(Packet& pkt) const noexcept = 0;
  // The one in force, null for kernels without: whoever runs the module's function keeps it for a call, and
  // the control thread until the next edit.
  [[nodiscard]] virtual KernelTable* table() noexcept { return nullptr; }
  // What the kernel computes, here. By whoever runs the module's function.
  virtual void compute(const KernelTable* table, const Input* inputs, uint32_t n,
                       uint8_t* results) noexcept = 0;
  // What the module makes of the results of a batch's packets, as process() or classify() would.
  virtual void apply(KernelTable* table, Context& ctx, Batch& batch,
                     const uint8_t* results) noexcept = 0;
};

}  // namespace batchplane
