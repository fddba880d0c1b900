// SPDX-License-Identifier: BSD-3-Clause
// esp_kernel.h - ESP with AES-GCM on a device with its own memory: the part common to both
// directions.
#pragma once

#include <atomic>
#include <span>

#include "core/module/kernel.h"
#include "modules/esp/esp_commands.h"
#include "modules/esp/esp_kernel_words.h"

namespace batchplane::esp {

// Start of an input; followed by the ESP packet, with room for its ICV. As in esp_gcm.cl.
struct KernelHead {
  uint32_t index;  // index of the SA among those that the kernel supports
  uint32_t body_bytes;
  uint32_t sequence_high;
  uint32_t nothing;
};
inline constexpr uint32_t kKernelEspBytes =
    kEspHeaderBytes + sizeof(uint64_t);  // ESP header and IV
inline constexpr uint32_t kKernelOwnBytes = sizeof(KernelHead) + kKernelEspBytes + kMaxIcvBytes;

enum class Verdict : uint32_t { kWrongIcv, kRight, kNotComputed };
struct KernelResult {
  Verdict verdict;
  uint32_t nothing;
};

// Base class of both modules, which select the packets and handle the results.
class EspKernel : public RewritingKernel {
 public:
  [[nodiscard]] KernelSource source() const override;
  [[nodiscard]] const char* entry() const override {
    return direction_ == Direction::kOut ? "esp_encrypt" : "esp_decrypt";
  }
  [[nodiscard]] uint32_t result_bytes() const override { return sizeof(KernelResult); }
  [[nodiscard]] uint32_t lanes() const override { return kGcmLanes; }
  [[nodiscard]] KernelTable* table() noexcept override { return &sas_.table(); }
  uint32_t write_trial(std::span<uint8_t> bytes) noexcept override;
  void compute_over(const KernelTable* table, const std::span<uint8_t>* inputs, uint32_t n,
                    uint8_t* results) noexcept override;

 protected:
  // Both references are to members of the module.
  EspKernel(Direction direction, const SaCommands& sas, Crypto& crypto)
      : direction_(direction), sas_(sas), crypto_(crypto) {}

  // For Module::kernel(). Throws ConfigError if no SA has a suite that the kernel supports.
  Kernel* checked();
  // Whether a returned result belongs to this packet, SA and sequence number.
  [[nodiscard]] static bool is_of(const Sa& sa, const Work& work, Input sent) noexcept;
  static Verdict verdict_of(const uint8_t* results, uint32_t i) noexcept {
    return reinterpret_cast<const KernelResult*>(results)[i].verdict;
  }

 private:
  // Returns false if the input does not fit this table.
  static bool read(const SaTable& table, std::span<uint8_t> input, Work& work) noexcept;

  const Direction direction_;
  const SaCommands& sas_;
  Crypto& crypto_;
  bool is_checked_ = false;  // later edits may remove all such SAs
};

}  // namespace batchplane::esp
