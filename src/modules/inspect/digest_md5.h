// SPDX-License-Identifier: BSD-3-Clause
// digest_md5.h - MD5 (RFC 1321) of many texts in parallel, one in each lane of a vector register.
#pragma once

#include <cstdint>

#include "modules/inspect/text.h"

namespace batchplane::inspect {

inline constexpr uint32_t kMd5Bytes = 16;

// 8 lanes per register (AVX2) or 16 (AVX-512); two registers when there are enough texts.
enum class Md5Code : uint8_t { kAvx2, kAvx512 };
[[nodiscard]] bool has_md5_code(Md5Code code) noexcept;

// Writes the digest of text i to digests + i * stride_bytes. Uses the best code the processor
// supports.
void md5(const Text* texts, uint32_t n, uint8_t* digests, uint32_t stride_bytes) noexcept;
void md5_by(Md5Code code, const Text* texts, uint32_t n, uint8_t* digests,
            uint32_t stride_bytes) noexcept;

}  // namespace batchplane::inspect
