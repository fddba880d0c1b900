// SPDX-License-Identifier: BSD-3-Clause
// pcap_reader.h - a whole pcap or pcapng file in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace batchplane::ports {

struct PcapRecording {
  struct Frame {
    uint64_t offset;     // into bytes
    uint32_t len_bytes;  // as captured
    uint64_t at_ns;      // since the first frame; never falls
  };
  std::vector<uint8_t> bytes;
  std::vector<Frame> frames;
  uint64_t duration_ns = 0;        // of one round of a loop: to the last frame, and a mean gap
  uint64_t cut_pkts = 0;           // recorded shorter than they were
  uint64_t unfit_pkts = 0;         // left out: shorter than an Ethernet header, or too long
  uint64_t out_of_order_pkts = 0;  // stamped before their predecessor; taken as simultaneous
  uint32_t longest_bytes = 0;
};

inline constexpr uint64_t kMaxRecordingBytes = 4ULL << 30;

// Throws ConfigError: no such file, not a capture, damaged, cut off, not Ethernet, too large.
PcapRecording read_pcap(const std::string& path, const std::string& where);

}  // namespace batchplane::ports
