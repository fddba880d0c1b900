// SPDX-License-Identifier: BSD-3-Clause
// digest_sha_ipsec_mb.h - SHA-1 and SHA-256 of many texts, by intel-ipsec-mb.
#pragma once

#include <cstdint>
#include <memory>

#include "modules/inspect/text.h"

namespace batchplane::inspect {

inline constexpr uint32_t kSha1Bytes = 20;
inline constexpr uint32_t kSha256Bytes = 32;

// Owner: one worker at a time.
class Sha {
 public:
  Sha();  // throws ConfigError when the library cannot work here
  ~Sha();
  Sha(const Sha&) = delete;
  Sha& operator=(const Sha&) = delete;

  // Writes the digest of text i to digests + i * stride_bytes.
  void sha1(const Text* texts, uint32_t n, uint8_t* digests, uint32_t stride_bytes) noexcept;
  void sha256(const Text* texts, uint32_t n, uint8_t* digests, uint32_t stride_bytes) noexcept;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace batchplane::inspect
