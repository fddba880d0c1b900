// SPDX-License-Identifier: BSD-3-Clause
// pcap_writer.cc - the two file formats, and the thread that writes them.
#include "ports/pcap_writer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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
constexpr std::chrono::milliseconds kPauseWhenIdle{1};
constexpr std::chrono::milliseconds kPauseAfterFailure{100};

// Enough for the thread to reserve more in time at 100 Gbit/s.
constexpr int64_t kLowRoomBytes = 16 << 20;
constexpr int64_t kMinRoomBytes = 4096;

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
  std::setvbuf(file_, nullptr, _IONBF, 0);
  block_.reserve(2 * kBlockBytes);
  write_header();
  if (!flush()) {
    std::fclose(file_);
    throw ConfigError("cannot write " + path + ": " + std::strerror(errno), where,
                      "make room on that disk, or give another path");
  }
}

PcapFile::~PcapFile() {
  flush();
  // Releases reserved space; a pipe has none.
  if (reserved_bytes_ > whole_bytes_) (void)!ftruncate(fileno(file_), whole_bytes_);
  std::fclose(file_);
}

int64_t PcapFile::record_bytes(uint32_t len_bytes) const {
  return is_pcapng_ ? 32 + padded(len_bytes) : 16 + len_bytes;
}

int64_t PcapFile::reserve(int64_t most_bytes) {
  rlimit limit{};
  int64_t largest_bytes = kNoLimit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kNoLimit) {
    largest_bytes = static_cast<int64_t>(limit.rlim_cur);
  }
  const int64_t from = std::max(reserved_bytes_, whole_bytes_);
  for (int64_t n = std::min(most_bytes, largest_bytes - from); n > 0; n /= 2) {
    if (fallocate(fileno(file_), FALLOC_FL_KEEP_SIZE, from, n) == 0) {
      reserved_bytes_ = from + n;
      return n;
    }
    if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG && errno != EINTR) return kNoLimit;
    if (n < kMinRoomBytes) break;
  }
  return 0;
}

void PcapFile::put(const void* bytes, size_t n) {
  const auto* from = static_cast<const uint8_t*>(bytes);
  block_.insert(block_.end(), from, from + n);
}

bool PcapFile::flush() {
  if (block_.empty()) return true;
  const bool is_whole = std::fwrite(block_.data(), 1, block_.size(), file_) == block_.size();
  if (is_whole) {
    whole_bytes_ += static_cast<int64_t>(block_.size());
  } else {
    std::clearerr(file_);
    // A pipe keeps what it has received.
    if (ftruncate(fileno(file_), whole_bytes_) == 0) std::fseek(file_, 0, SEEK_END);
    lost_pkts_ += block_pkts_;
  }
  block_.clear();
  block_pkts_ = 0;
  return is_whole;
}

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
    put(header, sizeof(header));
    put(data, len_bytes);
    ++block_pkts_;
    return block_.size() < kBlockBytes || flush();
  }
  const uint32_t block_bytes = 32 + padded(len_bytes);
  const uint32_t header[7] = {
      6,         block_bytes, 0, static_cast<uint32_t>(at_ns >> 32), static_cast<uint32_t>(at_ns),
      len_bytes, len_bytes};
  const uint32_t zero = 0;
  put(header, sizeof(header));
  put(data, len_bytes);
  put(&zero, padded(len_bytes) - len_bytes);
  put(&block_bytes, sizeof(block_bytes));
  ++block_pkts_;
  return block_.size() < kBlockBytes || flush();
}

PcapWriterThread::PcapWriterThread(const std::string& path, uint32_t queue_pkts,
                                   const std::string& where)
    : file_(path, where),
      ring_(queue_pkts),
      base_cycles_(TscClock::cycles()),
      base_wall_ns_(wall_ns()) {
  TscClock::instance();
  find_room();
  thread_ = std::thread([this] { run(); });
}

PcapWriterThread::~PcapWriterThread() {
  must_stop_.store(true, std::memory_order_release);
  thread_.join();
}

// Reads the cycle counter once per burst: a recording needs true time stamps.
uint32_t PcapWriterThread::offer(Packet** pkts, uint32_t n) noexcept {
  if (is_failing_.load(std::memory_order_relaxed)) return 0;
  const int64_t room_bytes = room_bytes_.load(std::memory_order_relaxed);
  // Computes lengths first: the writer thread frees the packets.
  n = std::min(n, ring_.free_slots());
  int64_t used_bytes = 0;
  uint32_t fit = 0;
  for (; fit < n; ++fit) {
    const int64_t bytes = file_.record_bytes(pkts[fit]->len_bytes());
    if (used_bytes + bytes > room_bytes) break;
    used_bytes += bytes;
  }
  room_bytes_.fetch_sub(used_bytes, std::memory_order_relaxed);
  const uint64_t cycles = TscClock::cycles();
  return ring_.produce(fit, [&](uint32_t i, Slot& slot) { slot = {pkts[i], cycles}; });
}

void PcapWriterThread::find_room() {
  const int64_t room_bytes = room_bytes_.load(std::memory_order_relaxed);
  if (room_bytes >= kLowRoomBytes) return;
  room_bytes_.fetch_add(file_.reserve(kLowRoomBytes), std::memory_order_relaxed);
}

void PcapWriterThread::run() {
  [[maybe_unused]] const PacketThread registered;
  while (!must_stop_.load(std::memory_order_acquire)) {
    find_room();
    const bool is_idle = write_some() == 0;
    const bool has_failed = (is_idle && !file_.flush()) || file_.lost_pkts() != failed_pkts();
    if (!is_idle && !has_failed) continue;
    note_written();
    is_failing_.store(has_failed, std::memory_order_relaxed);
    std::this_thread::sleep_for(has_failed ? kPauseAfterFailure : kPauseWhenIdle);
    is_failing_.store(false, std::memory_order_relaxed);
  }
  while (write_some() != 0) {
  }
  file_.flush();
  note_written();
}

void PcapWriterThread::note_written() {
  failed_pkts_.store(file_.lost_pkts(), std::memory_order_relaxed);
  written_pkts_.store(taken_pkts_ - file_.lost_pkts(), std::memory_order_relaxed);
}

uint32_t PcapWriterThread::write_some() {
  Slot slots[kWriteBurstPkts];
  Packet* pkts[kWriteBurstPkts];
  const uint32_t n = ring_.dequeue(slots, kWriteBurstPkts);
  const TscClock& clock = TscClock::instance();
  for (uint32_t i = 0; i < n; ++i) {
    pkts[i] = slots[i].pkt;
    const uint64_t at_ns =
        base_wall_ns_ + clock.to_ns(slots[i].cycles - std::min(slots[i].cycles, base_cycles_));
    file_.write(pkts[i]->data(), pkts[i]->len_bytes(), at_ns);
  }
  if (n != 0) PacketPool::free_bulk(pkts, n);
  taken_pkts_ += n;
  return n;
}

}  // namespace batchplane::ports
