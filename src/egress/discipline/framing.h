// SPDX-License-Identifier: BSD-3-Clause
// framing.h - the size of a packet on the wire, including framing overhead.
#pragma once

#include <algorithm>
#include <cstdint>

namespace batchplane::egress {

enum class Cells : uint8_t {
  kNoCells,
  kAtm,  // 48 bytes of payload in each cell of 53 (ADSL)
  kPtm,  // 64 bytes in 65 (VDSL2)
};

struct Framing {
  // 24 on Ethernet: preamble, start delimiter, checksum, gap; may be < 0
  int32_t overhead_bytes = 0;
  int32_t min_bytes = 1;  // smallest frame including overhead; at least 1
  Cells cells = Cells::kNoCells;

  [[nodiscard]] uint32_t wire_bytes(uint32_t len_bytes) const noexcept {
    const int32_t framed = static_cast<int32_t>(len_bytes) + overhead_bytes;
    const auto bytes = static_cast<uint32_t>(std::max(framed, min_bytes));
    if (cells == Cells::kNoCells) [[likely]]
      return bytes;
    return cells == Cells::kAtm ? (bytes + 47) / 48 * 53 : (bytes * 65 + 63) / 64;
  }

  bool operator==(const Framing&) const = default;
};

}  // namespace batchplane::egress
