// SPDX-License-Identifier: BSD-3-Clause
// pcap_reader.h - reads a whole pcap or pcapng file into memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace batchplane::ports {

struct PcapRecording {
  struct Frame {
    uint64_t offset;     // into bytes
    uint32_t len_bytes;  // as captured
    uint64_t at_ns;      // since the first frame; never decreases
  };
  std::vector<uint8_t> bytes;
  std::vector<Frame> frames;
  uint64_t duration_ns = 0;        // of one loop round: up to the last frame, plus a mean gap
  uint64_t cut_pkts = 0;           // captured only in part
  uint64_t unfit_pkts = 0;         // skipped: shorter than an Ethernet header, or too long
  uint64_t out_of_order_pkts = 0;  // stamped before their predecessor; replayed at the same time
  uint32_t longest_bytes = 0;
};

inline constexpr uint64_t kMaxRecordingBytes = 4ULL << 30;

// Throws ConfigError: file missing, not a capture, damaged, truncated, not Ethernet, or too large.
PcapRecording read_pcap(const std::string& path, const std::string& where);

}  // namespace batchplane::ports
