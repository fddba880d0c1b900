// SPDX-License-Identifier: BSD-3-Clause
// packet_summary.h - one line about a packet from its first bytes, for traces.
#pragma once

#include <cstdint>
#include <string>

namespace batchplane::app {

// `n_bytes` of the packet's `len_bytes` are there to look at.
std::string summarize(const uint8_t* bytes, uint32_t n_bytes, uint32_t len_bytes);

}  // namespace batchplane::app
