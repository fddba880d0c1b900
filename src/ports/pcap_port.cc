// SPDX-License-Identifier: BSD-3-Clause
// pcap_port.cc - replays a capture file as input, and records sent packets in another.
#include <algorithm>
#include <cstring>

#include "core/packet/packet_pool.h"
#include "exec/batch.h"
#include "ports/pcap_reader.h"
#include "ports/pcap_writer.h"
#include "ports/port_counters.h"
#include "ports/port_kinds.h"
#include "ports/ring_take.h"

namespace batchplane::ports {
namespace {

class PcapPort final : public Port {
 public:
  explicit PcapPort(const Args& args)
      : mac_(local_mac(args.name())),
        is_looped_(args.flag("loop")),
        is_paced_(args.string("pace") == "recorded"),
        speed_(args.number("speed")) {
    const std::string& read = args.string("read");
    const std::string& write = args.string("write");
    if (read.empty() && write.empty()) {
      throw ConfigError("neither read nor write is given", args.where(),
                        "name a capture file to replay, or one to record into");
    }
    if (!read.empty() && read == write) {
      throw ConfigError("read and write are the same file", args.where(),
                        "record into another file");
    }
    if (!read.empty()) recording_ = read_pcap(read, args.where() + ".read");
    if (!write.empty()) {
      writer_ = std::make_unique<PcapWriterThread>(write, args.u32("write_queue_pkts"),
                                                   args.where() + ".write");
    }
  }

  void start(PacketPool& pool) override {
    if (pool.data_bytes() < recording_.longest_bytes) {
      throw ConfigError("the recording has packets of " + std::to_string(recording_.longest_bytes) +
                            " bytes, the pool's hold " + std::to_string(pool.data_bytes()),
                        "", "make the packets of the pool larger");
    }
    pool_ = &pool;
  }

  uint32_t rx_burst(Packet** pkts, uint32_t max, uint64_t now_ns) noexcept override {
    if (!has_begun_) {
      begin_ns_ = now_ns;
      has_begun_ = true;
    }
    uint64_t due_ns[exec::kMaxBatchPkts];
    const uint32_t n = count_due(std::min(max, exec::kMaxBatchPkts), now_ns, due_ns);
    // Due packets keep their due time while the pool is empty: they arrive later, and count as late.
    if (n == 0 || pool_ == nullptr || !pool_->alloc_bulk(pkts, n)) return 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const PcapRecording::Frame& frame = recording_.frames[next_];
      pkts[i]->reset(frame.len_bytes);
      std::memcpy(pkts[i]->data(), recording_.bytes.data() + frame.offset, frame.len_bytes);
      pkts[i]->meta() = fresh_meta(due_ns[i]);
      bytes += frame.len_bytes;
      step();
    }
    counters_.rx_pkts.add(n);
    counters_.rx_bytes.add(bytes);
    return n;
  }

  uint32_t tx_burst(Packet** pkts, uint32_t n) noexcept override {
    if (n == 0) return 0;
    const uint64_t bytes = writer_ == nullptr ? sum_len_bytes(pkts, n) : 0;
    if (writer_ == nullptr) {
      PacketPool::free_bulk(pkts, n);
      counters_.tx_pkts.add(n);
      counters_.tx_bytes.add(bytes);
      return n;
    }
    // The writer thread may free a packet as soon as it has it.
    uint32_t len_bytes[exec::kMaxBatchPkts];
    n = std::min(n, exec::kMaxBatchPkts);
    for (uint32_t i = 0; i < n; ++i) len_bytes[i] = pkts[i]->len_bytes();
    const uint32_t taken = writer_->offer(pkts, n);
    for (uint32_t i = 0; i < taken; ++i) counters_.tx_bytes.add(len_bytes[i]);
    counters_.tx_pkts.add(taken);
    counters_.tx_refused_pkts.add(n - taken);
    return taken;
  }

  [[nodiscard]] PortStats stats() const override {
    PortStats stats = counters_.stats();
    stats.rx_refused_pkts += recording_.unfit_pkts;
    return stats;
  }
  [[nodiscard]] net::Mac mac() const override { return mac_; }
  [[nodiscard]] uint32_t max_frame_bytes() const override {
    return std::max(2048U, recording_.longest_bytes);
  }
  [[nodiscard]] uint64_t max_held_pkts() const override {
    return writer_ == nullptr ? 0 : writer_->capacity_pkts();
  }
  [[nodiscard]] bool is_exhausted() const override {
    return is_done_.load(std::memory_order_relaxed) || recording_.frames.empty();
  }
  [[nodiscard]] Value show() const override {
    Dict facts = {{"recorded_pkts", static_cast<uint64_t>(recording_.frames.size())},
                  {"duration_ns", recording_.duration_ns},
                  {"cut_pkts", recording_.cut_pkts},
                  {"unfit_pkts", recording_.unfit_pkts},
                  {"out_of_order_pkts", recording_.out_of_order_pkts},
                  {"rounds", rounds_.get()}};
    if (writer_ != nullptr) {
      facts["written_pkts"] = writer_->written_pkts();
      facts["failed_pkts"] = writer_->failed_pkts();
    }
    return facts;
  }

 private:
  [[nodiscard]] uint64_t scaled_ns(uint64_t recorded_ns) const {
    return speed_ == 1.0 ? recorded_ns
                         : static_cast<uint64_t>(static_cast<double>(recorded_ns) / speed_);
  }

  // How many of the next frames are due, with their due times.
  uint32_t count_due(uint32_t max, uint64_t now_ns, uint64_t* due_ns) const {
    const size_t size = recording_.frames.size();
    if (size == 0 || is_done_.load(std::memory_order_relaxed)) return 0;
    size_t at = next_;
    uint64_t round_ns = begin_ns_;
    uint32_t n = 0;
    while (n < max) {
      due_ns[n] = is_paced_ ? round_ns + scaled_ns(recording_.frames[at].at_ns) : now_ns;
      if (due_ns[n] > now_ns) break;
      ++n;
      if (++at < size) continue;
      if (!is_looped_) break;
      at = 0;
      round_ns += scaled_ns(recording_.duration_ns);
    }
    return n;
  }

  void step() {
    if (++next_ < recording_.frames.size()) return;
    next_ = 0;
    begin_ns_ += scaled_ns(recording_.duration_ns);
    rounds_.add(1);
    if (!is_looped_) is_done_.store(true, std::memory_order_relaxed);
  }

  const net::Mac mac_;
  const bool is_looped_;
  const bool is_paced_;
  const double speed_;
  PcapRecording recording_;
  PacketPool* pool_ = nullptr;
  size_t next_ = 0;
  bool has_begun_ = false;
  uint64_t begin_ns_ = 0;  // start of the current round
  std::atomic<bool> is_done_{false};
  Counter rounds_;
  PortCounters counters_;
  std::unique_ptr<PcapWriterThread> writer_;
};

}  // namespace

PortKindInfo pcap_port_kind() {
  return {
      .kind = "pcap",
      .help = "Replays a pcap or pcapng file, and records what is sent.",
      .params =
          {{.name = "read",
            .type = ParamType::kString,
            .default_value = "",
            .help = "capture file to replay; empty = nothing arrives"},
           {.name = "write",
            .type = ParamType::kString,
            .default_value = "",
            .help =
                "file to record into, pcapng or pcap by its ending; empty = what is sent is freed"},
           {.name = "loop",
            .type = ParamType::kBool,
            .default_value = false,
            .help = "begin again after the last packet"},
           {.name = "pace",
            .type = ParamType::kString,
            .default_value = "top",
            .help = "top: as fast as they are taken; recorded: by their stamps",
            .choices = {"top", "recorded"}},
           {.name = "speed",
            .type = ParamType::kFloat,
            .default_value = 1.0,
            .help = "factor on the recorded pace",
            .min = 1e-6,
            .max = 1e6},
           {.name = "write_queue_pkts",
            .unit = "pkts",
            .default_value = 4096,
            .help = "packets that may wait for the file; more are refused",
            .min = 1,
            .max = 1048576}},
      .notes =
          "The file is read into memory at the start. Packets cut by the recording's snap length "
          "come in as short as they were kept.",
      .make = [](const Args& args) -> std::shared_ptr<Port> {
        return std::make_shared<PcapPort>(args);
      },
  };
}

}  // namespace batchplane::ports
