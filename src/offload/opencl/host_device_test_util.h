// SPDX-License-Identifier: BSD-3-Clause
// host_device_test_util.h - a device whose kernels run on the CPU, to test the handling of kernels that
// rewrite their inputs on machines without a device.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "offload/kernel/device_kernel.h"

namespace batchplane::offload {

struct HostFaults {
  uint32_t n_polls = 0;        // polls until a batch is done
  bool is_byte_wrong = false;  // corrupts the last byte of each batch; results are right
};

class HostKernel final : public DeviceKernel {
 public:
  HostKernel(Kernel& kernel, uint32_t max_pkts, const Quiescence* quiescence,
             const HostFaults& faults)
      : DeviceKernel(kernel, max_pkts, quiescence), kernel_(*kernel.rewriting()), faults_(faults) {
    for (uint32_t s = 0; s < kSlots; ++s) {
      Memory& memory = memory_[s];
      memory.bytes.resize(room_bytes_);
      memory.returned.resize(room_bytes_);
      memory.places.resize(max_pkts_);
      memory.results.resize(size_t{max_pkts_} * result_bytes_);
      slots_[s].bytes = memory.bytes.data();
      slots_[s].returned = memory.returned.data();
      slots_[s].places = memory.places.data();
      slots_[s].results = memory.results.data();
    }
    renew_table(kernel, "");
    for (uint32_t s = 0; s < kSlots; ++s) clear(s);
  }
  [[nodiscard]] State poll(uint32_t slot) noexcept override {
    if (memory_[slot].polls_left == 0) return State::kDone;
    --memory_[slot].polls_left;
    return State::kRunning;
  }

 private:
  struct Memory {
    std::vector<uint8_t> bytes;
    std::vector<uint8_t> returned;
    std::vector<Place> places;
    std::vector<uint8_t> results;
    uint32_t polls_left = 0;
  };
  [[nodiscard]] std::unique_ptr<Table> make_table(const std::vector<uint32_t>& /*words*/,
                                                  int32_t& /*error*/) override {
    return std::make_unique<Table>();
  }
  // Results of a table that an edit has replaced must not be used.
  [[nodiscard]] bool begin(uint32_t slot) noexcept override {
    Slot& s = slots_[slot];
    memory_[slot].polls_left = faults_.n_polls;
    std::copy_n(s.bytes, s.n_bytes, s.returned);
    if (s.table_number != kernel_.table()->number()) return true;
    for (uint32_t i = 0; i < s.n; ++i) {
      const std::span<uint8_t> input(s.returned + s.places[i].at, s.places[i].n_bytes);
      kernel_.compute_over(kernel_.table(), &input, 1, s.results + i * result_bytes_);
    }
    if (faults_.is_byte_wrong && s.n_bytes != 0) s.returned[s.n_bytes - 1] ^= 1;
    return true;
  }
  [[nodiscard]] const std::string& device_name() const override { return name_; }

  RewritingKernel& kernel_;
  const HostFaults& faults_;
  Memory memory_[kSlots];
  const std::string name_ = "host";
};

class HostDevice final : public KernelDevice {
 public:
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::unique_ptr<DeviceKernel> make_kernel(
      Kernel& kernel, uint32_t max_pkts, const Quiescence* quiescence,
      const std::string& /*where*/) const override {
    return std::make_unique<HostKernel>(kernel, max_pkts, quiescence, faults);
  }
  HostFaults faults;

 private:
  const std::string name_ = "host";
};

}  // namespace batchplane::offload
