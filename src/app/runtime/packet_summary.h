// SPDX-License-Identifier: BSD-3-Clause
// packet_summary.h - summarises a packet from its first bytes in one line, for traces.
#pragma once

#include <cstdint>
#include <string>

namespace batchplane::app {

// Only `n_bytes` of the packet's `len_bytes` are available.
std::string summarize(const uint8_t* bytes, uint32_t n_bytes, uint32_t len_bytes);

}  // namespace batchplane::app
