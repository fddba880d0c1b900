// SPDX-License-Identifier: BSD-3-Clause
// esp_kernel.cc - inputs for the device kernel, and the same computation on the CPU.
#include "modules/esp/esp_kernel.h"

#include <cstring>

#include "base/error.h"
#include "base/net6.h"

namespace batchplane::esp {
namespace {

constexpr const char* kGcmOpenCl =
#include "modules/esp/esp_gcm.cl.h"
    ;
constexpr const char* kGcmPtx =
#include "modules/esp/esp_gcm.ptx.h"
    ;

KernelHead head_in(Kernel::Input input) noexcept {
  KernelHead head;
  std::memcpy(&head, input.data(), sizeof head);
  return head;
}

}  // namespace

KernelSource EspKernel::source() const { return {kGcmOpenCl, kGcmPtx}; }

Kernel* EspKernel::checked() {
  if (is_checked_) return this;
  if (!sas_.table().of_kernel.empty() || sas_.table().sas.empty()) {
    is_checked_ = true;
    return this;
  }
  std::string names;
  for (const Suite& suite : suites()) {
    if (suite.cipher == Cipher::kGcm)
      names += (names.empty() ? "" : ", ") + std::string(suite.name);
  }
  throw ConfigError("no SA has a suite that a device with memory of its own computes",
                    sas_.where() + ".sas",
                    "it can do " + names + "; else leave the device out of `on`");
}

bool EspKernel::is_of(const Sa& sa, const Work& work, Input sent) noexcept {
  if (sent.size() != kKernelOwnBytes + work.body_bytes) return false;
  const KernelHead head = head_in(sent);
  return head.index == sa.kernel_index && head.body_bytes == work.body_bytes &&
         head.sequence_high == work.sequence >> 32 &&
         net::load32(&sent[sizeof head + sizeof(net::Esp::spi)]) ==
             static_cast<uint32_t>(work.sequence);
}

bool EspKernel::read(const SaTable& table, std::span<uint8_t> input, Work& work) noexcept {
  if (input.size() < kKernelOwnBytes) return false;
  const KernelHead head = head_in(input);
  const KeySchedule* const keys = table.keys_of_kernel(head.index);
  if (keys == nullptr || head.body_bytes % sizeof(uint32_t) != 0 ||
      head.body_bytes != input.size() - kKernelOwnBytes) {
    return false;
  }
  work.keys = keys;
  work.esp = &input[sizeof head];
  work.body_bytes = head.body_bytes;
  work.sequence = uint64_t{head.sequence_high} << 32 |
                  uint32_t{reinterpret_cast<const net::Esp*>(work.esp)->sequence};
  return true;
}

void EspKernel::compute_over(const KernelTable* table, const std::span<uint8_t>* inputs, uint32_t n,
                             uint8_t* results) noexcept {
  for (uint32_t i = 0; i < n; ++i) {
    KernelResult result{Verdict::kNotComputed, 0};
    Work work;
    if (read(static_cast<const SaTable&>(*table), inputs[i], work)) {
      if (direction_ == Direction::kOut) {
        crypto_.encrypt(&work, 1);
        result.verdict = Verdict::kRight;
      } else {
        crypto_.decrypt(&work, 1);
        result.verdict = Crypto::is_genuine(work) ? Verdict::kRight : Verdict::kWrongIcv;
      }
    }
    std::memcpy(results + i * sizeof result, &result, sizeof result);
  }
}

// Half of the trial packets for decryption are genuine.
uint32_t EspKernel::write_trial(std::span<uint8_t> bytes) noexcept {
  const SaTable& table = sas_.table();
  const auto n_bytes = static_cast<uint32_t>(bytes.size() & ~size_t{3});
  if (n_bytes < kKernelOwnBytes) return 0;
  KernelHead head = head_in(bytes);
  const bool is_genuine = head.index % 2 == 0;
  head.index = static_cast<uint32_t>(head.index / 2 % (table.of_kernel.size() + 1));
  head.body_bytes = n_bytes - kKernelOwnBytes;
  std::memcpy(bytes.data(), &head, sizeof head);
  Work work;
  if (!read(table, bytes.first(n_bytes), work)) return 0;
  net::store64(work.esp + kEspHeaderBytes, work.sequence);
  if (direction_ == Direction::kIn && is_genuine) crypto_.encrypt(&work, 1);
  return n_bytes;
}

}  // namespace batchplane::esp
