// SPDX-License-Identifier: BSD-3-Clause
// esp_kernel_words.h - keys of AES-GCM as esp_gcm.cl reads them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace batchplane::esp {

// An SA's own, its salt behind the cipher's key.
struct GcmKey {
  std::span<const uint8_t> key_and_salt;
  bool has_esn = false;
};

// Whoever gets them overwrites them afterwards.
[[nodiscard]] std::vector<uint32_t> gcm_words(std::span<const GcmKey> keys);

}  // namespace batchplane::esp
