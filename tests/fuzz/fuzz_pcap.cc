// SPDX-License-Identifier: BSD-3-Clause
// fuzz_pcap.cc - bytes as a capture file: refused with a reason, or every frame lies inside it.
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "core/packet/packet.h"
#include "fuzz.h"
#include "ports/pcap_reader.h"

namespace batchplane::fuzz {
namespace {

void check(const ports::PcapRecording& recording) {
  uint64_t last_ns = 0;
  uint64_t sum = 0;
  for (const auto& frame : recording.frames) {
    require(frame.len_bytes <= recording.bytes.size() &&
                frame.offset <= recording.bytes.size() - frame.len_bytes,
            "a frame reaches past the recording");
    require(frame.len_bytes <= kMaxFrameBytes, "a frame longer than any");
    require(frame.len_bytes <= recording.longest_bytes, "a frame longer than the longest");
    require(frame.at_ns >= last_ns, "time runs backwards");
    last_ns = frame.at_ns;
    for (uint32_t i = 0; i < frame.len_bytes; ++i) sum += recording.bytes[frame.offset + i];
  }
  require(recording.duration_ns >= last_ns, "the recording ends before its last frame");
  require(recording.out_of_order_pkts <= recording.frames.size(),
          "more frames out of order than there are");
  [[maybe_unused]] static volatile uint64_t kept;
  kept = sum;
}

}  // namespace

int fuzz_pcap(const uint8_t* data, size_t size) {
  const int fd = memfd_create("fuzz_pcap", MFD_CLOEXEC);
  require(fd >= 0 && write(fd, data, size) == static_cast<ssize_t>(size), "no memory for a file");
  try {
    const auto recording = ports::read_pcap("/proc/self/fd/" + std::to_string(fd), "fuzz");
    check(recording);
    tally.frames += recording.frames.size();
    ++tally.accepted;
  } catch (const ConfigError& error) {
    require(error.what()[0] != 0, "a mistake without words");
  }
  close(fd);
  return 0;
}

}  // namespace batchplane::fuzz
