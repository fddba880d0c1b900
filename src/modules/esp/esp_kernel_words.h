// SPDX-License-Identifier: BSD-3-Clause
// esp_kernel_words.h - AES-GCM keys in the format that esp_gcm.cl reads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace batchplane::esp {

inline constexpr uint32_t kGcmLanes = 32;  // work items per packet; as in esp_gcm.cl

// The key of an SA: cipher key followed by salt.
struct GcmKey {
  std::span<const uint8_t> key_and_salt;
  bool has_esn = false;
};

// The caller must overwrite the result after use.
[[nodiscard]] std::vector<uint32_t> gcm_words(std::span<const GcmKey> keys);

}  // namespace batchplane::esp
