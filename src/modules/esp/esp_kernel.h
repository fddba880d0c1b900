// SPDX-License-Identifier: BSD-3-Clause
// esp_kernel.h - ESP with AES-GCM on a device with memory of its own: what both directions have alike.
#pragma once

#include <atomic>
#include <span>

#include "core/module/kernel.h"
#include "modules/esp/esp_commands.h"

namespace batchplane::esp {

// An input: this, the ESP packet as it is sent or as it has come, with room for its ICV. As in esp_gcm.cl.
struct KernelHead {
  uint32_t index;  // of the SA, among those that the kernel knows
  uint32_t body_bytes;
  uint32_t sequence_high;
  uint32_t nothing;
};
inline constexpr uint32_t kKernelEspBytes = kEspHeaderBytes + sizeof(uint64_t);  // up to the body
inline constexpr uint32_t kKernelOwnBytes = sizeof(KernelHead) + kKernelEspBytes + kMaxIcvBytes;

enum class Verdict : uint32_t { kWrongIcv, kRight, kNotComputed };
struct KernelResult {
  Verdict verdict;
  uint32_t nothing;
};

// The base of a module. Which packets there are, and what becomes of them, is the module's to say.
class EspKernel : public RewritingKernel {
 public:
  [[nodiscard]] KernelSource source() const override;
  [[nodiscard]] const char* entry() const override {
    return direction_ == Direction::kOut ? "esp_encrypt" : "esp_decrypt";
  }
  [[nodiscard]] uint32_t result_bytes() const override { return sizeof(KernelResult); }
  [[nodiscard]] KernelTable* table() noexcept override { return &sas_.table(); }
  uint32_t write_trial(std::span<uint8_t> bytes) noexcept override;
  void compute_over(const KernelTable* table, const std::span<uint8_t>* inputs, uint32_t n,
                    uint8_t* results) noexcept override;

 protected:
  // Both are the module's own.
  EspKernel(Direction direction, const SaCommands& sas, Crypto& crypto)
      : direction_(direction), sas_(sas), crypto_(crypto) {}

  // For Module::kernel(). Throws ConfigError where no SA has a suite that the kernel knows.
  Kernel* checked();
  // Whether what came back is of this packet, by this SA and with this number.
  [[nodiscard]] static bool is_of(const Sa& sa, const Work& work, Input sent) noexcept;
  static Verdict verdict_of(const uint8_t* results, uint32_t i) noexcept {
    return reinterpret_cast<const KernelResult*>(results)[i].verdict;
  }

 private:
  // False where the input is none of this table.
  static bool read(const SaTable& table, std::span<uint8_t> input, Work& work) noexcept;

  const Direction direction_;
  const SaCommands& sas_;
  Crypto& crypto_;
  bool is_checked_ = false;  // edits may leave it without such an SA
};

}  // namespace batchplane::esp
