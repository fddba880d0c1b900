// SPDX-License-Identifier: BSD-3-Clause
// kernel.h - what of a module's work a device with memory of its own can do: a result of fixed size for each
// packet, made of a part of its bytes and of nothing else.
#pragma once

#include <cstdint>
#include <span>

#include "core/module/context.h"

namespace batchplane {

// The module's function is compute() and then apply(); a device takes the place of compute().
class Kernel {
 public:
  using Input = std::span<const uint8_t>;

  virtual ~Kernel() = default;

  // OpenCL C 1.2: `__kernel void entry(__global const uint* bytes, __global const uint2* places, uint n,
  // __global uint* results)`. Work item i < n finds its input at byte places[i].x, a multiple of 4, with
  // places[i].y bytes, and writes result_bytes() at results + i * result_bytes() / 4.
  [[nodiscard]] virtual const char* source() const = 0;
  [[nodiscard]] virtual const char* entry() const = 0;
  [[nodiscard]] virtual uint32_t result_bytes() const = 0;  // a multiple of 8

  // The part of the packet that goes to the device.
  [[nodiscard]] virtual Input input_of(Packet& pkt) const noexcept = 0;
  // What the kernel computes, here. By whoever runs the module's function.
  virtual void compute(const Input* inputs, uint32_t n, uint8_t* results) noexcept = 0;
  // What the module makes of the results of a batch's packets, as process() or classify() would.
  virtual void apply(Context& ctx, Batch& batch, const uint8_t* results) noexcept = 0;
};

}  // namespace batchplane
