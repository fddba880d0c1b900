// SPDX-License-Identifier: BSD-3-Clause
// esp_suite.h - encryption and authentication algorithms of ESP, by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace batchplane::esp {

enum class Cipher : uint8_t { kGcm, kChaCha, kCbc };
enum class Auth : uint8_t { kOfCipher, kSha1, kSha256 };

struct Suite {
  const char* name = "";
  Cipher cipher = Cipher::kGcm;
  Auth auth = Auth::kOfCipher;
  uint32_t cipher_key_bytes = 0;
  uint32_t salt_bytes = 0;      // follows the cipher's key (RFC 4106, 8.1; RFC 7634, 2)
  uint32_t auth_key_bytes = 0;  // 0: the cipher authenticates (AEAD)
  uint32_t iv_bytes = 0;
  uint32_t icv_bytes = 0;
  uint32_t block_bytes = 0;  // packets are padded to a multiple of this

  [[nodiscard]] uint32_t key_bytes() const { return cipher_key_bytes + salt_bytes; }
};

[[nodiscard]] std::span<const Suite> suites();
// Returns nullptr if there is none.
[[nodiscard]] const Suite* find_suite(const std::string& name);
// All names in one line.
[[nodiscard]] std::string suite_names();

}  // namespace batchplane::esp
