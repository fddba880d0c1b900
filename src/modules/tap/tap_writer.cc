// SPDX-License-Identifier: BSD-3-Clause
// tap_writer.cc - capture file formats and the thread that writes them.
#include "modules/tap/tap_writer.h"

#include <chrono>
#include <cstring>

#include "base/own_file.h"

namespace batchplane {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(5);
constexpr uint32_t kLinkEthernet = 1;
constexpr uint64_t kNsPerSecond = 1'000'000'000;

// Readers take the byte order from the magic number, so files use the machine's byte order.
struct PcapHeader {
  uint32_t magic = 0xa1b23c4d;  // nanoseconds
  uint16_t major = 2;
  uint16_t minor = 4;
  int32_t zone = 0;
  uint32_t accuracy = 0;
  uint32_t snaplen = 0;
  uint32_t link = kLinkEthernet;
};
struct PcapRecord {
  uint32_t seconds;
  uint32_t nanoseconds;
  uint32_t stored;
  uint32_t original;
};

struct SectionBlock {
  uint32_t type = 0x0a0d0d0a;
  uint32_t bytes = 28;
  uint32_t magic = 0x1a2b3c4d;
  uint16_t major = 1;
  uint16_t minor = 0;
  uint32_t section_bytes[2] = {~0U, ~0U};  // unknown
  uint32_t bytes_again = 28;
};
struct InterfaceBlock {
  uint32_t type = 1;
  uint32_t bytes = 32;
  uint16_t link = kLinkEthernet;
  uint16_t reserved = 0;
  uint32_t snaplen = 0;
  uint16_t resolution_code = 9;  // option if_tsresol: one byte, 10^-9 s
  uint16_t resolution_bytes = 1;
  uint32_t resolution = 9;
  uint32_t end_of_options = 0;
  uint32_t bytes_again = 32;
};
struct PacketBlock {
  uint32_t type = 6;
  uint32_t bytes = 0;
  uint32_t interface = 0;
  uint32_t time_high = 0;
  uint32_t time_low = 0;
  uint32_t stored = 0;
  uint32_t original = 0;
};
static_assert(sizeof(PcapHeader) == 24 && sizeof(SectionBlock) == 28);
static_assert(sizeof(InterfaceBlock) == 32 && sizeof(PacketBlock) == 28);

}  // namespace

TapWriter::TapWriter(TapFile file)
    : file_(std::move(file)), ring_(file_.ring_bytes), bytes_(file_.snaplen_bytes + 8) {
  thread_ = std::thread([this] { work(); });
}

TapWriter::~TapWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  if (out_ != nullptr) std::fclose(out_);
}

bool TapWriter::offer(uint64_t time_ns, const uint8_t* data, uint32_t len_bytes) noexcept {
  return ring_.push({time_ns, std::min(len_bytes, file_.snaplen_bytes), len_bytes}, data);
}

void TapWriter::flush() {
  std::unique_lock lock(mutex_);
  const uint64_t mine = ++flushes_wanted_;
  wake_.notify_one();
  flushed_.wait(lock, [&] { return flushes_done_ >= mine; });
}

std::string TapWriter::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

// Workers must not wake other threads, so this thread polls the ring.
void TapWriter::work() {
  std::unique_lock lock(mutex_);
  for (bool is_last = false; !is_last;) {
    is_last = is_stopping_;
    const uint64_t flushes = flushes_wanted_;
    lock.unlock();
    drain();
    lock.lock();
    flushes_done_ = flushes;
    flushed_.notify_all();
    if (!is_stopping_ && flushes_wanted_ == flushes) wake_.wait_for(lock, kPollInterval);
  }
}

void TapWriter::drain() {
  ByteRing::Record record;
  bool any = false;
  while (ring_.pop(record, bytes_.data(), file_.snaplen_bytes)) {
    if (out_ == nullptr && !is_failed_) open();
    write_record(record);
    any = true;
  }
  if (any && out_ != nullptr && std::fflush(out_) != 0) fail("cannot write");
}

void TapWriter::open() {
  std::string why_not;
  out_ = create_own_stream(file_.path, why_not);
  if (out_ == nullptr) return fail("cannot open: " + why_not);
  if (is_pcapng()) {
    const SectionBlock section;
    InterfaceBlock interface;
    interface.snaplen = file_.snaplen_bytes;
    put(&section, sizeof section);
    put(&interface, sizeof interface);
  } else {
    PcapHeader header;
    header.snaplen = file_.snaplen_bytes;
    put(&header, sizeof header);
  }
}

void TapWriter::write_record(const ByteRing::Record& record) {
  const uint32_t padding = is_pcapng() ? (4 - record.stored_bytes % 4) % 4 : 0;
  const uint64_t needed = sizeof(PacketBlock) + record.stored_bytes + padding + 4;
  if (!is_failed_ && file_bytes_ + needed > file_.max_file_bytes) fail("max_file_bytes reached");
  if (is_failed_) {
    unwritten_pkts_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const uint64_t time_ns = record.time_ns + static_cast<uint64_t>(file_.epoch_offset_ns);
  if (is_pcapng()) {
    PacketBlock block;
    block.bytes = static_cast<uint32_t>(needed);
    block.time_high = static_cast<uint32_t>(time_ns >> 32);
    block.time_low = static_cast<uint32_t>(time_ns);
    block.stored = record.stored_bytes;
    block.original = record.original_bytes;
    std::memset(bytes_.data() + record.stored_bytes, 0, padding);
    put(&block, sizeof block);
    put(bytes_.data(), record.stored_bytes + padding);
    put(&block.bytes, 4);
  } else {
    const PcapRecord header{static_cast<uint32_t>(time_ns / kNsPerSecond),
                            static_cast<uint32_t>(time_ns % kNsPerSecond), record.stored_bytes,
                            record.original_bytes};
    put(&header, sizeof header);
    put(bytes_.data(), record.stored_bytes);
  }
  (is_failed_ ? unwritten_pkts_ : written_pkts_).fetch_add(1, std::memory_order_relaxed);
}

void TapWriter::put(const void* data, size_t n_bytes) {
  if (is_failed_) return;
  if (std::fwrite(data, 1, n_bytes, out_) != n_bytes) return fail("cannot write");
  file_bytes_ += n_bytes;
}

// Keeps the first error; later packets are counted, not written.
void TapWriter::fail(const std::string& what) {
  if (is_failed_) return;
  is_failed_ = true;
  const std::lock_guard lock(mutex_);
  error_ = file_.path + ": " + what;
}

}  // namespace batchplane
