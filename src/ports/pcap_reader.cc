// SPDX-License-Identifier: BSD-3-Clause
// pcap_reader.cc - loads capture files through libpcap, with nanosecond time stamps.
#include "ports/pcap_reader.h"

#include <pcap/pcap.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/net.h"
#include "core/packet/packet.h"

namespace batchplane::ports {
namespace {

using Handle = std::unique_ptr<pcap_t, decltype(&pcap_close)>;

Handle open_file(const std::string& path, const std::string& where) {
  char message[PCAP_ERRBUF_SIZE] = "";
  Handle file(
      pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, message),
      &pcap_close);
  if (file == nullptr) {
    throw ConfigError("cannot read " + path + ": " + message, where,
                      "give a pcap or pcapng file that this user may read");
  }
  if (const int type = pcap_datalink(file.get()); type != DLT_EN10MB) {
    const char* name = pcap_datalink_val_to_name(type);
    throw ConfigError(path + " was recorded from a link of type " +
                          (name == nullptr ? std::to_string(type) : std::string(name)),
                      where, "only Ethernet captures can be replayed");
  }
  return file;
}

void add_frame(PcapRecording& recording, const pcap_pkthdr& header, const u_char* data,
               uint64_t& first_ns) {
  if (header.caplen < net::kEthBytes || header.caplen > kMaxFrameBytes) {
    ++recording.unfit_pkts;
    return;
  }
  // With nanosecond precision libpcap stores nanoseconds in the field for microseconds.
  const uint64_t stamp_ns = static_cast<uint64_t>(header.ts.tv_sec) * 1'000'000'000ULL +
                            static_cast<uint64_t>(header.ts.tv_usec);
  if (recording.frames.empty()) first_ns = stamp_ns;
  uint64_t at_ns = stamp_ns - std::min(stamp_ns, first_ns);
  if (!recording.frames.empty() && stamp_ns < first_ns + recording.frames.back().at_ns) {
    at_ns = recording.frames.back().at_ns;
    ++recording.out_of_order_pkts;
  }
  recording.cut_pkts += header.caplen < header.len ? 1 : 0;
  recording.frames.push_back({recording.bytes.size(), header.caplen, at_ns});
  recording.bytes.insert(recording.bytes.end(), data, data + header.caplen);
  recording.longest_bytes = std::max(recording.longest_bytes, header.caplen);
}

}  // namespace

PcapRecording read_pcap(const std::string& path, const std::string& where) {
  const Handle file = open_file(path, where);
  PcapRecording recording;
  uint64_t first_ns = 0;
  uint64_t n_read = 0;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int status = 0;
  while ((status = pcap_next_ex(file.get(), &header, &data)) == 1) {
    ++n_read;
    add_frame(recording, *header, data, first_ns);
    if (recording.bytes.size() > kMaxRecordingBytes) {
      throw ConfigError(path + " holds more than " + std::to_string(kMaxRecordingBytes >> 30) +
                            " GB of packets, and is kept in memory",
                        where, "cut it into smaller files with editcap -c");
    }
  }
  if (status == PCAP_ERROR) {
    throw ConfigError(
        path + " is damaged after packet " + std::to_string(n_read) + ": " +
            pcap_geterr(file.get()),
        where,
        "record it again, or keep its good part: editcap IN OUT 1-" + std::to_string(n_read));
  }
  if (!recording.frames.empty()) {
    const uint64_t last_ns = recording.frames.back().at_ns;
    const uint64_t gaps = std::max<uint64_t>(1, recording.frames.size() - 1);
    // Stamps may be as large as 64 bits allow.
    const uint64_t pause_ns = std::max<uint64_t>(1, last_ns / gaps);
    recording.duration_ns = last_ns > ~0ULL - pause_ns ? ~0ULL : last_ns + pause_ns;
  }
  return recording;
}

}  // namespace batchplane::ports
