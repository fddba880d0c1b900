// SPDX-License-Identifier: BSD-3-Clause
// kernel.h - the part of a module's work that a device with its own memory can do: from a part of each packet
// and an existing table it computes a result of fixed size, and may replace the packet's bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "core/module/context.h"

namespace batchplane {

// Data that a kernel reads besides packets, such as rules or weights. Immutable: an edit makes another table
// with another number.
class KernelTable {
 public:
  virtual ~KernelTable() = default;
  KernelTable() = default;
  KernelTable(const KernelTable&) = delete;
  KernelTable& operator=(const KernelTable&) = delete;

  [[nodiscard]] uint64_t number() const { return number_; }  // from 1; unique within the process
  // The table as sent to the device. It may contain keys, so the caller overwrites it afterwards. Control
  // thread.
  [[nodiscard]] virtual std::vector<uint32_t> words() const = 0;
  // At most this many bytes of a packet's input matter.
  [[nodiscard]] virtual uint32_t most_input_bytes() const { return ~0U; }

 private:
  inline static std::atomic<uint64_t> last_number_{0};
  const uint64_t number_ = ++last_number_;
};

// One source as OpenCL C 1.2 and as NVIDIA's PTX, which is empty if the build had no compiler for it.
struct KernelSource {
  const char* opencl;
  const char* ptx;
};

class RewritingKernel;

// The module's function is compute() followed by apply(); a device replaces compute(). Module::kernel()
// throws ConfigError when a parameter of the module prevents that.
class Kernel {
 public:
  using Input = std::span<const uint8_t>;

  virtual ~Kernel() = default;

  // `__kernel void entry(__global const uint* bytes, __global const uint2* places, uint n, __global uint*
  // results)`. Input i < n has places[i].y bytes from byte places[i].x on, a multiple of 4, and its result goes
  // to results + i * result_bytes() / 4. With a table there is one more argument: `__global const uint*
  // table`.
  [[nodiscard]] virtual KernelSource source() const = 0;
  [[nodiscard]] virtual const char* entry() const = 0;
  [[nodiscard]] virtual uint32_t result_bytes() const = 0;  // a multiple of 8
  // Work items of a group. 1: work item i computes input i, and there may be more of them than n. More: they can
  // share `__local` memory and meet at a `barrier`, which all of them must reach, whatever the inputs are.
  [[nodiscard]] virtual uint32_t lanes() const { return 1; }
  // Inputs of such a group: group g computes those from g * group_inputs() on, as many as there are below n.
  [[nodiscard]] virtual uint32_t group_inputs() const { return 1; }

  // The part of the packet that goes to the device.
  [[nodiscard]] virtual Input input_of(Packet& pkt) const noexcept = 0;
  // The table in force, null for kernels without one: the caller of the module's function keeps it for one
  // call, the control thread until the next edit.
  [[nodiscard]] virtual KernelTable* table() noexcept { return nullptr; }
  // Computes on the CPU what the kernel does. On the thread that runs the module's function.
  virtual void compute(const KernelTable* table, const Input* inputs, uint32_t n,
                       uint8_t* results) noexcept = 0;
  // Applies the results to a batch's packets, as process() or classify() would.
  virtual void apply(KernelTable* table, Context& ctx, Batch& batch,
                     const uint8_t* results) noexcept = 0;
  // This object, if it is a RewritingKernel.
  [[nodiscard]] virtual RewritingKernel* rewriting() noexcept { return nullptr; }
};

// A kernel that overwrites its input: `bytes` is not const there, and comes back together with the results.
// It writes its inputs itself, and includes in them its guesses of the module's later state.
class RewritingKernel : public Kernel {
 public:
  static constexpr uint32_t kMostBytes = 16'384;  // of an input
  static constexpr uint32_t kNoRoom = ~0U;
  // A packet's input as sent, and as returned.
  struct Rewritten {
    Input sent;
    const uint8_t* returned;
  };

  // Returns the input's length; 0: the device has nothing to do for this packet. kNoRoom: `to` is too short,
  // and no guess is made. One thread at a time, concurrently with the module's function.
  virtual uint32_t write_input(Packet& pkt, std::span<uint8_t> to) noexcept = 0;
  // Whether it guesses the module's state as it will be after all earlier packets.
  [[nodiscard]] virtual bool guesses() const { return false; }
  // Restarts guesses from the present state: all earlier packets have been processed.
  virtual void guess_anew() noexcept {}
  // Makes a trial input from random bytes; returns its length, limited like write_input()'s.
  virtual uint32_t write_trial(std::span<uint8_t> bytes) noexcept = 0;
  // compute() on inputs, in place.
  virtual void compute_over(const KernelTable* table, const std::span<uint8_t>* inputs, uint32_t n,
                            uint8_t* results) noexcept = 0;
  // Like apply(). Results that do not fit the packet as it is now are recomputed here. False: a guess was
  // wrong.
  virtual bool apply_over(KernelTable* table, Context& ctx, Batch& batch, const uint8_t* results,
                          const Rewritten* rewritten) noexcept = 0;

  RewritingKernel* rewriting() noexcept final { return this; }
  [[nodiscard]] Input input_of(Packet& /*pkt*/) const noexcept final { return {}; }
  void compute(const KernelTable* /*table*/, const Input* /*inputs*/, uint32_t /*n*/,
               uint8_t* /*results*/) noexcept final {}
  void apply(KernelTable* /*table*/, Context& /*ctx*/, Batch& /*batch*/,
             const uint8_t* /*results*/) noexcept final {}
};

}  // namespace batchplane
