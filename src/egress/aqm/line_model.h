// SPDX-License-Identifier: BSD-3-Clause
// line_model.h - a queue in front of a line with TCP-like senders, in virtual time: measures ping
// delay and utilisation.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "egress/aqm/fq_codel.h"

namespace batchplane::egress {

// Four senders that grow their windows until a packet is lost or marked, and one light sender, over
// a line of 100 Mbit/s with 20 ms of round-trip time.
class LineModel {
 public:
  enum class Kind { kTailDrop, kCodel, kFqCodel, kPie };

  LineModel(Kind kind, bool marks) : kind_(kind), marks_(marks) {}

  void run(uint64_t until_ns) {
    for (uint32_t s = 0; s < kSenders; ++s) schedule({s * kMs, s, Event::Kind::kStart});
    schedule({0, kPing, Event::Kind::kPing});
    while (!events_.empty() && events_.top().at_ns < until_ns) {
      const Event event = events_.top();
      events_.pop();
      now_ns_ = event.at_ns;
      handle(event);
      transmit();
    }
  }
  // The given quantile of ping delays after the first two seconds.
  [[nodiscard]] double ping_ms(double part) {
    std::ranges::sort(pings_ms_);
    return pings_ms_[static_cast<size_t>(static_cast<double>(pings_ms_.size()) * part)];
  }
  // Utilisation of the line over the same time.
  [[nodiscard]] double goodput(uint64_t until_ns) const {
    return static_cast<double>(delivered_bytes_) * 8e9 / 1e8 /
           static_cast<double>(until_ns - kWarmUpNs);
  }

 private:
  static constexpr uint64_t kMs = 1'000'000;
  static constexpr uint64_t kWarmUpNs = 2000 * kMs;
  static constexpr uint32_t kSenders = 4;
  static constexpr uint32_t kPing = 4;
  static constexpr uint64_t kRttNs = 20 * kMs;
  static constexpr uint64_t kPktNs = 121'120;  // 1514 bytes
  static constexpr uint32_t kTailDropBytes = 1'000'000;

  struct Event {
    enum class Kind : uint8_t { kStart, kAck, kLoss, kPing, kLineFree };
    uint64_t at_ns;
    uint32_t sender;
    Kind kind;
    bool operator>(const Event& other) const { return at_ns > other.at_ns; }
  };
  struct Sender {
    double window = 10;
    double threshold = 1e9;
    uint32_t in_flight = 0;
    uint64_t cut_at_ns = 0;
  };

  void schedule(const Event& event) { events_.push(event); }
  void handle(const Event& event) {
    Sender& sender = senders_[event.sender];
    switch (event.kind) {
      case Event::Kind::kStart:
        break;
      case Event::Kind::kPing:
        put(kPing, 98);
        schedule({now_ns_ + 10 * kMs, kPing, Event::Kind::kPing});
        return;
      case Event::Kind::kLineFree:
        is_line_busy_ = false;
        return;
      case Event::Kind::kAck:
        --sender.in_flight;
        sender.window += sender.window < sender.threshold ? 1 : 1 / sender.window;
        break;
      case Event::Kind::kLoss:
        --sender.in_flight;
        cut(sender);
        break;
    }
    while (sender.in_flight < static_cast<uint32_t>(sender.window)) {
      ++sender.in_flight;
      put(event.sender, 1514);
    }
  }
  void cut(Sender& sender) {
    if (now_ns_ < sender.cut_at_ns + kRttNs) return;
    sender.cut_at_ns = now_ns_;
    sender.window = sender.threshold = std::max(2.0, sender.window * 0.7);
  }
  void put(uint32_t sender, uint32_t len) {
    const uint32_t hash = kind_ == Kind::kFqCodel ? sender : 0;
    const Descriptor pkt =
        Descriptor::of(sender, len, flow_word(0, hash, marks_ && sender != kPing), now_ns_);
    const bool is_full = backlog_bytes_ + len > kTailDropBytes;
    if (is_full || !fq_.push(pkts_, lists_, pkt, aqm())) {
      if (sender != kPing) schedule({now_ns_ + kRttNs, sender, Event::Kind::kLoss});
      return;
    }
    backlog_bytes_ += len;
    ++backlog_pkts_;
  }
  void transmit() {
    if (is_line_busy_ || backlog_pkts_ == 0) return;
    DropList drops;
    // With an infinite target, packets are never late: a tail drop queue.
    const uint64_t target_ns = kind_ == Kind::kTailDrop ? ~0ULL : 0;
    const Descriptor pkt = fq_.pop(pkts_, lists_, now_ns_, target_ns, drops, aqm());
    for (uint32_t i = 0; i < drops.n; ++i) leave(drops.all[i], Event::Kind::kLoss);
    leave(pkt, (pkt.flow & kMarkBit) != 0 ? Event::Kind::kLoss : Event::Kind::kAck);
    is_line_busy_ = true;
    schedule({now_ns_ + kPktNs * pkt.len_bytes() / 1514, 0, Event::Kind::kLineFree});
    if (now_ns_ < kWarmUpNs) return;
    if (pkt.handle() == kPing)
      pings_ms_.push_back(static_cast<double>(pkt.waited_ns(now_ns_)) / 1e6);
    delivered_bytes_ += pkt.len_bytes();
  }
  [[nodiscard]] Aqm aqm() const { return kind_ == Kind::kPie ? Aqm::kPie : Aqm::kCodel; }
  void leave(const Descriptor& pkt, Event::Kind what) {
    backlog_bytes_ -= pkt.len_bytes();
    if (--backlog_pkts_ == 0) fq_.clear(lists_);
    const auto sender = static_cast<uint32_t>(pkt.handle());
    if (sender != kPing) schedule({now_ns_ + kRttNs, sender, what});
  }

  Kind kind_;
  bool marks_;
  PktStore pkts_{10'000};
  FqCodel fq_{100, {}, 1514};
  FqLists lists_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::array<Sender, kSenders + 1> senders_;
  std::vector<double> pings_ms_;
  uint64_t now_ns_ = 0;
  uint64_t delivered_bytes_ = 0;
  uint32_t backlog_bytes_ = 0;
  uint32_t backlog_pkts_ = 0;
  bool is_line_busy_ = false;
};

}  // namespace batchplane::egress
