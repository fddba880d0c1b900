// SPDX-License-Identifier: BSD-3-Clause
// pcap_tap.cc - copies packets to a capture file outside the data path; when the ring is full,
// copies are lost, but never packets.
//
// in: 1   out: 1   drops: none   state: the open file
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "base/clock.h"
#include "base/own_file.h"
#include "core/module/register.h"
#include "modules/common/tally.h"
#include "modules/tap/tap_writer.h"

namespace batchplane {
namespace {

int64_t epoch_offset_ns() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count() -
         static_cast<int64_t>(TscClock::instance().now_ns());
}

TapFile file_of(const Args& args) {
  const std::filesystem::path path = args.string("path");
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (path.empty() || std::filesystem::is_directory(path)) {
    throw ConfigError("'" + path.string() + "' is no file name", args.where() + ".path",
                      "name a file ending in .pcap or .pcapng");
  }
  if (const std::string why = why_no_own_file(path.string()); !why.empty()) {
    throw ConfigError("cannot write '" + path.string() + "': " + why, args.where() + ".path");
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw ConfigError("cannot write into '" + folder.string() + "'", args.where() + ".path",
                      "make the folder, or name another one");
  }
  return {.path = path.string(),
          .snaplen_bytes = args.u32("snaplen_bytes"),
          .ring_bytes = args.u64("ring_bytes"),
          .max_file_bytes = args.u64("max_file_bytes"),
          .epoch_offset_ns = epoch_offset_ns()};
}

class PcapTap final : public Module {
 public:
  explicit PcapTap(const Args& args)
      : writer_(std::make_unique<TapWriter>(file_of(args))),
        is_on_(args.flag("is_on")),
        sample_one_in_(args.u32("sample_one_in")) {}

  void process(Context& ctx, Batch& batch) noexcept {
    if (!is_on_.load(std::memory_order_relaxed)) return;
    const uint32_t sample_one_in = sample_one_in_.load(std::memory_order_relaxed);
    uint64_t missed = 0;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      if (++since_last_ < sample_one_in) continue;
      since_last_ = 0;
      Packet& pkt = *batch[i];
      missed += writer_->offer(ctx.now_ns, pkt.data(), pkt.len_bytes()) ? 0 : 1;
    }
    if (missed != 0) missed_pkts_.add(missed);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "flush") {
      writer_->flush();
      return show();
    }
    if (verb != "set") return Module::command(verb, args);
    if (!args.is_dict())
      throw ConfigError("expected {is_on, sample_one_in}", "set", "give one or both");
    for (const auto& [key, value] : args.as_dict()) {
      const bool is_fine = (key == "is_on" && value.is_bool()) ||
                           (key == "sample_one_in" && value.is_int() && value.as_int() >= 1 &&
                            value.as_int() <= kMaxSampling);
      if (!is_fine) {
        throw ConfigError("cannot set '" + key + "' so", "set",
                          "is_on is true or false, sample_one_in 1 to 1000000000");
      }
    }
    if (args.has("is_on")) is_on_.store(args["is_on"].as_bool());
    if (args.has("sample_one_in")) {
      sample_one_in_.store(static_cast<uint32_t>(args["sample_one_in"].as_int()));
    }
    return show();
  }

  [[nodiscard]] Value show() const override {
    return Dict{{"path", writer_->file().path},
                {"is_on", is_on_.load()},
                {"sample_one_in", sample_one_in_.load()},
                {"written_pkts", writer_->written_pkts()},
                {"missed_pkts", missed_pkts_.value() + writer_->unwritten_pkts()},
                {"error", writer_->error()}};
  }

  [[nodiscard]] Dict saved_params() const override {
    return {{"is_on", is_on_.load()}, {"sample_one_in", sample_one_in_.load()}};
  }

  // Keeps the file open when the new module writes to the same one.
  void adopt(Module& old) noexcept override {
    auto& other = static_cast<PcapTap&>(old);
    missed_pkts_.set(other.missed_pkts_.value());
    since_last_ = other.since_last_;
    const TapFile& mine = writer_->file();
    const TapFile& theirs = other.writer_->file();
    if (mine.path == theirs.path && mine.snaplen_bytes == theirs.snaplen_bytes &&
        mine.ring_bytes == theirs.ring_bytes && mine.max_file_bytes == theirs.max_file_bytes) {
      writer_.swap(other.writer_);
    }
  }

  static constexpr int64_t kMaxSampling = 1'000'000'000;

 private:
  std::unique_ptr<TapWriter> writer_;
  std::atomic<bool> is_on_;
  std::atomic<uint32_t> sample_one_in_;
  uint32_t since_last_ = 0;
  Tally missed_pkts_;
};

const Register<PcapTap> kPcapTap{{
    .kind = "pcap_tap",
    .state = StateOf::kOneOwner,
    .help = "Copies passing packets to a capture file, with nanosecond times.",
    .params = {{.name = "path",
                .type = ParamType::kString,
                .help = "the file; .pcapng gives that format, any other name pcap"},
               {.name = "snaplen_bytes",
                .type = ParamType::kInt,
                .unit = "bytes",
                .default_value = 256,
                .help = "how much of each packet to keep",
                .min = 1,
                .max = kMaxFrameBytes},
               {.name = "sample_one_in",
                .type = ParamType::kInt,
                .unit = "pkts",
                .default_value = 1,
                .help = "copy every n-th packet",
                .min = 1,
                .max = 1e9},
               {.name = "is_on",
                .type = ParamType::kBool,
                .default_value = true,
                .help = "whether copies are taken"},
               {.name = "ring_bytes",
                .type = ParamType::kInt,
                .unit = "bytes",
                .default_value = 4 << 20,
                .help = "memory between the worker and the file",
                .min = 16384,
                .max = 1 << 30},
               {.name = "max_file_bytes",
                .type = ParamType::kInt,
                .unit = "bytes",
                .default_value = 1 << 30,
                .help = "writing stops when the file has this size",
                .min = 1024,
                .max = 1e13}},
    .notes =
        "Never slows or loses traffic: copies that find no room count as missed_pkts. The file is "
        "made when the first packet comes. Live commands: set {is_on, sample_one_in}, flush.",
    .is_passive = true,
    .opens = [](const Dict& params) -> std::optional<Opens> {
      const auto path = params.find("path");
      if (path == params.end() || path->second == Value("/dev/null")) return std::nullopt;
      return Opens{.what = "its capture file", .stand_in = "null"};
    },
}};

}  // namespace
}  // namespace batchplane
