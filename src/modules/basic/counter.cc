// SPDX-License-Identifier: BSD-3-Clause
// counter.cc - counts packets and bytes, by frame size.
//
// in: 1   out: 1   drops: none   state: the counts
#include "core/module/register.h"
#include "modules/common/tally.h"

namespace batchplane {
namespace {

constexpr uint32_t kSizes = 8;
constexpr const char* kSizeNames[kSizes] = {"up_to_63",   "up_to_127",  "up_to_255",  "up_to_511",
                                            "up_to_1023", "up_to_2047", "up_to_4095", "longer"};

// 0 below 64 bytes, then one more for each doubling of the size.
uint32_t size_class(uint32_t len_bytes) {
  const uint32_t bits = 32 - static_cast<uint32_t>(__builtin_clz(len_bytes | 32));
  return std::min(bits - 6, kSizes - 1);
}

struct Counts {
  uint64_t pkts = 0;
  uint64_t bytes = 0;
  uint64_t by_size[kSizes] = {};
};

class Counter final : public Module {
 public:
  explicit Counter(const Args& args) : counts_sizes_(args.flag("by_size")) {}

  void process(Context& /*ctx*/, Batch& batch) noexcept {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      const uint32_t len_bytes = batch[i]->len_bytes();
      bytes += len_bytes;
      if (counts_sizes_) by_size_[size_class(len_bytes)].add(1);
    }
    pkts_.add(batch.size_pkts);
    bytes_.add(bytes);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb != "reset") return Module::command(verb, args);
    base_ = read();
    return show();
  }

  [[nodiscard]] Value show() const override {
    const Counts now = read();
    Dict shown{{"pkts", now.pkts - base_.pkts}, {"bytes", now.bytes - base_.bytes}};
    if (!counts_sizes_) return shown;
    Dict sizes;
    for (uint32_t s = 0; s < kSizes; ++s) sizes[kSizeNames[s]] = now.by_size[s] - base_.by_size[s];
    shown["by_size_pkts"] = sizes;
    return shown;
  }

  void adopt(Module& old) noexcept override {
    const auto& other = static_cast<const Counter&>(old);
    pkts_.set(other.pkts_.value());
    bytes_.set(other.bytes_.value());
    for (uint32_t s = 0; s < kSizes; ++s) by_size_[s].set(other.by_size_[s].value());
    base_ = other.base_;
  }

 private:
  [[nodiscard]] Counts read() const {
    Counts counts{.pkts = pkts_.value(), .bytes = bytes_.value()};
    for (uint32_t s = 0; s < kSizes; ++s) counts.by_size[s] = by_size_[s].value();
    return counts;
  }

  const bool counts_sizes_;
  Tally pkts_;
  Tally bytes_;
  Tally by_size_[kSizes];
  Counts
      base_;  // control thread: subtracted after `reset`, so that only the worker writes the counts
};

const Register<Counter> kCounter{{
    .kind = "counter",
    .state = StateOf::kNone,
    .help = "Counts packets and bytes.",
    .params = {{.name = "by_size",
                .type = ParamType::kBool,
                .default_value = false,
                .help = "count by frame size too, in classes of powers of two"}},
    .notes = "Live command: reset.",
}};

}  // namespace
}  // namespace batchplane
