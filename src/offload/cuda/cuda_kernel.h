// SPDX-License-Identifier: BSD-3-Clause
// cuda_kernel.h - a module's kernel on an NVIDIA GPU: memory, tables, launches, results.
#pragma once

#include <memory>
#include <utility>

#include "offload/cuda/cuda_device.h"

namespace batchplane::offload {

namespace cu {

// Device memory, host memory and other resources to release. The destructor needs the device's context to
// be current in the calling thread.
template <class T>
class Owned {
 public:
  Owned() = default;
  Owned(T handle, int32_t (*release)(T)) : handle_(handle), release_(release) {}
  Owned(Owned&& other) noexcept { *this = std::move(other); }
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Owned() {
    if (handle_ != T{}) release_(handle_);
  }
  [[nodiscard]] T get() const { return handle_; }
  void forget() { handle_ = T{}; }

 private:
  T handle_ = T{};
  int32_t (*release_)(T) = nullptr;
};

}  // namespace cu

// Launches may overlap. A small batch stays in host memory, which the GPU reads and writes directly: a copy would
// take longer than all the rest. The GPU fetches the bytes of a larger one from packets where they lie, if their
// memory is lent to it. Of many packets places and results are copied, too: read and written one by one, they
// would take longer than short packets.
class CudaKernel final : public DeviceKernel {
 public:
  // See KernelDevice::make_kernel().
  CudaKernel(std::shared_ptr<const CudaDevice> device, Kernel& kernel, uint32_t max_pkts,
             const Quiescence* quiescence, const std::string& where);
  ~CudaKernel() override;

  [[nodiscard]] State poll(uint32_t slot) noexcept override;

 private:
  struct GpuTable : Table {
    explicit GpuTable(std::shared_ptr<const CudaDevice> gpu) : device(std::move(gpu)) {}
    ~GpuTable() override { (void)device->use(); }

    // Outlives all other members of its kernel.
    const std::shared_ptr<const CudaDevice> device;
    cu::Owned<cu::Address> words;
  };
  struct Buffers {
    // Bytes, places, results, and rewritten bytes or where inputs are: in host memory, its addresses on the GPU,
    // and, but for rewritten bytes, in the GPU's memory.
    cu::Owned<void*> staged[4];
    cu::Address seen[4] = {};
    cu::Owned<cu::Address> own[4];
    cu::Owned<cu::StreamId> stream;
    cu::Owned<cu::EventId> done;
    bool is_under_way = false;
  };

  [[nodiscard]] std::unique_ptr<Table> make_table(const std::vector<uint32_t>& words,
                                                  int32_t& error) override;
  [[nodiscard]] bool begin(uint32_t slot) noexcept override;
  [[nodiscard]] std::span<const LentMemory> lent() const noexcept override {
    return device_->lent();
  }
  [[nodiscard]] bool can_fetch() const noexcept override { return true; }
  [[nodiscard]] const std::string& device_name() const override { return device_->name(); }

  struct Loaded {
    cu::Owned<cu::ModuleId> module;
    cu::FunctionId function = nullptr;
  };
  [[nodiscard]] Loaded load(const char* ptx, const std::string& entry, const std::string& where);
  void make_slot(uint32_t slot, const std::string& where);
  // Where a launch has what.
  struct Whereabouts {
    bool is_copied;  // the bytes are
    bool is_large;   // so are places and results
    cu::Address at[4];
  };
  [[nodiscard]] Whereabouts whereabouts(uint32_t slot) const;
  [[nodiscard]] bool bring(uint32_t slot, Whereabouts& to) noexcept;
  [[nodiscard]] bool take_back(uint32_t slot, const Whereabouts& from) noexcept;

  const std::shared_ptr<const CudaDevice> device_;
  Loaded kernel_;
  Loaded gather_;
  std::array<Buffers, kSlots> buffers_;
};

}  // namespace batchplane::offload
