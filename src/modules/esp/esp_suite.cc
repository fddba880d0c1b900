// SPDX-License-Identifier: BSD-3-Clause
// esp_suite.cc - the supported suites of RFC 8221: RFC 4106, 7634, and 3602 with 2404 or 4868.
#include "modules/esp/esp_suite.h"

#include <algorithm>

namespace batchplane::esp {
namespace {

constexpr Suite gcm(const char* name, uint32_t key_bytes) {
  return {name, Cipher::kGcm, Auth::kOfCipher, key_bytes, 4, 0, 8, 16, 4};
}
constexpr Suite cbc_sha1(const char* name, uint32_t key_bytes) {
  return {name, Cipher::kCbc, Auth::kSha1, key_bytes, 0, 20, 16, 12, 16};
}
constexpr Suite cbc_sha256(const char* name, uint32_t key_bytes) {
  return {name, Cipher::kCbc, Auth::kSha256, key_bytes, 0, 32, 16, 16, 16};
}

constexpr Suite kSuites[] = {
    gcm("aes-128-gcm", 16),
    gcm("aes-192-gcm", 24),
    gcm("aes-256-gcm", 32),
    {"chacha20-poly1305", Cipher::kChaCha, Auth::kOfCipher, 32, 4, 0, 8, 16, 4},
    cbc_sha1("aes-128-cbc-sha1", 16),
    cbc_sha1("aes-256-cbc-sha1", 32),
    cbc_sha256("aes-128-cbc-sha256", 16),
    cbc_sha256("aes-256-cbc-sha256", 32),
};

}  // namespace

std::span<const Suite> suites() { return kSuites; }

const Suite* find_suite(const std::string& name) {
  const auto* const found =
      std::ranges::find_if(kSuites, [&](const Suite& suite) { return name == suite.name; });
  return found == std::end(kSuites) ? nullptr : found;
}

std::string suite_names() {
  std::string names;
  for (const Suite& suite : kSuites) names += (names.empty() ? "" : ", ") + std::string(suite.name);
  return names;
}

}  // namespace batchplane::esp
