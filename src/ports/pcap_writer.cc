// SPDX-License-Identifier: BSD-3-Clause
// pcap_writer.cc - the two file formats, and the thread that writes them.
#include "ports/pcap_writer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>

#include "base/clock.h"
#include "base/error.h"
#include "base/own_file.h"
#include "core/engine/thread.h"
#include "core/packet/packet_pool.h"

namespace batchplane::ports {
namespace {

constexpr uint32_t kLinkEthernet = 1;
constexpr uint32_t kSnapBytes = 65535;
constexpr uint64_t kNsPerS = 1'000'000'000;
constexpr uint32_t kWriteBurstPkts = 64;

uint32_t padded(uint32_t n) { return (n + 3) & ~3U; }

uint64_t wall_ns() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * kNsPerS + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

PcapFile::PcapFile(const std::string& path, const std::string& where)
    : is_pcapng_(path.ends_with(".pcapng")) {
  std::string why_not;
  file_ = create_own_stream(path, why_not);
  if (file_ == nullptr) {
    throw ConfigError("cannot write " + path + ": " + why_not, where,
                      "give a path in a folder that this user may write to");
  }
  std::setvbuf(file_, nullptr, _IOFBF, 1 << 20);
  write_header();
}

PcapFile::~PcapFile() { std::fclose(file_); }

bool PcapFile::put(const void* bytes, size_t n) { return std::fwrite(bytes, 1, n, file_) == n; }
bool PcapFile::flush() { return std::fflush(file_) == 0; }

void PcapFile::write_header() {
  if (!is_pcapng_) {
    // Magic of nanosecond stamps, version 2.4, no time zone.
    const uint32_t header[6] = {0xa1b23c4d, 2U | 4U << 16, 0, 0, kSnapBytes, kLinkEthernet};
    put(header, sizeof(header));
    return;
  }
  // Section header of unknown length; one interface whose stamps count 10^-9 s.
  const uint32_t section[7] = {0x0a0d0d0a, 28, 0x1a2b3c4d, 1, ~0U, ~0U, 28};
  const uint32_t interface[8] = {1, 32, kLinkEthernet, kSnapBytes, 9U | 1U << 16, 9, 0, 32};
  put(section, sizeof(section));
  put(interface, sizeof(interface));
}

bool PcapFile::write(const uint8_t* data, uint32_t len_bytes, uint64_t at_ns) {
  if (!is_pcapng_) {
    const uint32_t header[4] = {static_cast<uint32_t>(at_ns / kNsPerS),
                                static_cast<uint32_t>(at_ns % kNsPerS), len_bytes, len_bytes};
    return put(header, sizeof(header)) && put(data, len_bytes);
  }
  const uint32_t block_bytes = 32 + padded(len_bytes);
  const uint32_t header[7] = {
      6,         block_bytes, 0, static_cast<uint32_t>(at_ns >> 32), static_cast<uint32_t>(at_ns),
      len_bytes, len_bytes};
  const uint32_t zero = 0;
  return put(header, sizeof(header)) && put(data, len_bytes) &&
         put(&zero, padded(len_bytes) - len_bytes) && put(&block_bytes, sizeof(block_bytes));
}

PcapWriterThread::PcapWriterThread(const std::string& path, uint32_t queue_pkts,
                                   const std::string& where)
    : file_(path, where),
      ring_(queue_pkts),
      base_cycles_(TscClock::cycles()),
      base_wall_ns_(wall_ns()) {
  TscClock::instance();
  thread_ = std::thread([this] { run(); });
}

PcapWriterThread::~PcapWriterThread() {
  must_stop_.store(true, std::memory_order_release);
  thread_.join();
}

// One reading of the cycle counter a burst: a recording without true stamps would be of little use.
uint32_t PcapWriterThread::offer(Packet** pkts, uint32_t n) noexcept {
  const uint64_t cycles = TscClock::cycles();
  return ring_.produce(n, [&](uint32_t i, Slot& slot) { slot = {pkts[i], cycles}; });
}

void PcapWriterThread::run() {
  [[maybe_unused]] const PacketThread registered;
  while (!must_stop_.load(std::memory_order_acquire)) {
    if (write_some() != 0) continue;
    file_.flush();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  while (write_some() != 0) {
  }
  file_.flush();
}

uint32_t PcapWriterThread::write_some() {
  Slot slots[kWriteBurstPkts];
  Packet* pkts[kWriteBurstPkts];
  const uint32_t n = ring_.dequeue(slots, kWriteBurstPkts);
  const TscClock& clock = TscClock::instance();
  uint64_t failed = 0;
  for (uint32_t i = 0; i < n; ++i) {
    pkts[i] = slots[i].pkt;
    const uint64_t at_ns =
        base_wall_ns_ + clock.to_ns(slots[i].cycles - std::min(slots[i].cycles, base_cycles_));
    failed += file_.write(pkts[i]->data(), pkts[i]->len_bytes(), at_ns) ? 0 : 1;
  }
  if (n != 0) PacketPool::free_bulk(pkts, n);
  written_pkts_.store(written_pkts() + n - failed, std::memory_order_relaxed);
  failed_pkts_.store(failed_pkts() + failed, std::memory_order_relaxed);
  return n;
}

}  // namespace batchplane::ports
