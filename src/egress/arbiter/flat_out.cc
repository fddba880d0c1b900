// SPDX-License-Identifier: BSD-3-Clause
#include "egress/arbiter/flat_out.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/pin_thread.h"
#include "egress/arbiter/arbiter.h"
#include "egress/arbiter/batch_mailbox.h"
#include "egress/arbiter/slot_mailbox.h"
#include "egress/discipline/disciplines.h"

namespace batchplane::egress {
namespace {

constexpr uint32_t kPktBytes = 60;
constexpr uint32_t kMailboxPkts = 1024;
constexpr uint32_t kTakePkts = 128;
constexpr uint32_t kReleasePkts = 512;

void pin(int cpu) {
  if (cpu >= 0) pin_this_thread(cpu);
}

// End of the packets' way. Owner: one thread.
class alignas(64) Sink {
 public:
  explicit Sink(bool copies) {
    if (!copies) return;
    ring_.resize(kSlots * kSlotBytes);
    packet_.resize(kSlotBytes, 1);
  }
  void take(const Descriptor& pkt) {
    ++pkts_;
    if (ring_.empty()) return;
    std::memcpy(&ring_[at_ * kSlotBytes], packet_.data(), pkt.len_bytes());
    at_ = (at_ + 1) % kSlots;
  }
  [[nodiscard]] uint64_t pkts() const { return pkts_; }

 private:
  static constexpr size_t kSlots = 1024;
  static constexpr size_t kSlotBytes = 2048;
  uint64_t pkts_ = 0;
  std::vector<uint8_t> ring_;
  std::vector<uint8_t> packet_;
  size_t at_ = 0;
};

// Sends packets of a client's flows, round robin.
class Sender {
 public:
  Sender(const FlatOutSpec& spec, uint32_t client)
      : spec_(spec), pkts_(spec.at_once), first_(client % spec.flows), flow_(first_) {}
  const std::vector<Descriptor>& make() {
    for (Descriptor& pkt : pkts_) {
      pkt = Descriptor::of(1, kPktBytes, flow_, 0);
      flow_ += spec_.clients;
      if (flow_ >= spec_.flows) flow_ = first_;
    }
    return pkts_;
  }

 private:
  const FlatOutSpec& spec_;
  std::vector<Descriptor> pkts_;
  uint32_t first_;
  uint32_t flow_;
};

// A lock that yields the core while it waits, because there may be more clients than cores.
class SpinLock {
 public:
  void lock() {
    for (uint32_t tries = 0; is_taken_.exchange(true, std::memory_order_acquire); ++tries) {
      if (tries % 64 == 63) std::this_thread::yield();
    }
  }
  void unlock() { is_taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> is_taken_{false};
};

template <Discipline D>
class Run {
 public:
  explicit Run(const FlatOutSpec& spec)
      : spec_(spec),
        arbiter_(D({spec.flows, 4 * kMailboxPkts + spec.clients * kMailboxPkts}), Link{}),
        sent_(spec.clients, 0) {
    for (uint32_t f = 0; f < spec.flows; ++f) {
      arbiter_.discipline().configure(f, {.lmax_bytes = kPktBytes});
    }
    const uint32_t n_sinks = 1 + std::max(spec.clients, spec.dispatchers);
    for (uint32_t k = 0; k < n_sinks; ++k) {
      sinks_.push_back(std::make_unique<Sink>(spec.copies));
    }
    for (uint32_t d = 0; d < spec.dispatchers; ++d) {
      to_send_.push_back(std::make_unique<BatchMailbox>(kMailboxPkts));
      held_.emplace_back();
    }
  }

  FlatOutResult run() {
    if (spec_.way == FlatOutSpec::Way::kLock) {
      run_clients([this](uint32_t c) { send_locked(c); }, sleep_a_while);
    } else if (spec_.way == FlatOutSpec::Way::kAlone) {
      run_clients([this](uint32_t c) { send_alone(c); }, sleep_a_while);
    } else if (spec_.at_once == 1) {
      run_arbiter<SlotMailbox>();
    } else {
      run_arbiter<BatchMailbox>();
    }
    return result();
  }

 private:
  static void sleep_a_while() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }
  // Calls `round` on this thread until the time is over, then ends the clients.
  template <class Client, class Round>
  void run_clients(const Client& client, const Round& round) {
    std::vector<std::thread> threads;
    const TscClock& clock = TscClock::instance();
    for (uint32_t c = 0; c < spec_.clients; ++c) {
      threads.emplace_back([this, &client, c] {
        pin(cpu_of(c));
        client(c);
      });
    }
    const uint64_t start_ns = clock.now_ns();
    while (clock.now_ns() - start_ns < spec_.run_ns) round();
    took_ns_ = clock.now_ns() - start_ns;
    must_stop_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads) thread.join();
  }
  [[nodiscard]] int cpu_of(uint32_t k) const {
    return spec_.other_cpus.empty() ? -1 : spec_.other_cpus[k % spec_.other_cpus.size()];
  }

  template <class Mailbox>
  void run_arbiter() {
    std::vector<std::unique_ptr<Mailbox>> mailboxes;
    for (uint32_t c = 0; c < spec_.clients; ++c) {
      mailboxes.push_back(std::make_unique<Mailbox>(kMailboxPkts));
    }
    std::vector<std::thread> dispatchers;
    for (uint32_t d = 0; d < spec_.dispatchers; ++d) {
      dispatchers.emplace_back([this, d] { dispatch(d); });
    }
    cpu_set_t before{};
    pthread_getaffinity_np(pthread_self(), sizeof before, &before);
    pin(spec_.arbiter_cpu);
    const TscClock& clock = TscClock::instance();
    const auto round = [&] {
      for (const auto& mailbox : mailboxes) take(*mailbox);
      release(clock.now_ns());
    };
    run_clients([&](uint32_t c) { send_to(*mailboxes[c], c); }, round);
    counted_pkts_ = arbiter_.counts().released_pkts;
    const auto holds = [&] {
      for (const auto& mailbox : mailboxes) {
        if (!mailbox->is_empty()) return true;
      }
      return arbiter_.discipline().backlog_pkts() != 0;
    };
    while (holds()) round();
    for (uint32_t d = 0; d < spec_.dispatchers; ++d) {
      while (!hand_on(d)) std::this_thread::yield();
    }
    is_over_.store(true, std::memory_order_release);
    for (std::thread& thread : dispatchers) thread.join();
    pthread_setaffinity_np(pthread_self(), sizeof before, &before);
  }

  template <class Mailbox>
  void take(Mailbox& mailbox) {
    arbiter_.take_from(mailbox, kTakePkts, [&](const Descriptor&, Enqueued) { ++refused_pkts_; });
  }
  void release(uint64_t now_ns) {
    if (spec_.dispatchers == 0) {
      arbiter_.release(now_ns, kReleasePkts, [&](const Descriptor& pkt) { sinks_[0]->take(pkt); });
      return;
    }
    // Packets that do not fit wait, in order, and nothing more is released meanwhile.
    for (uint32_t d = 0; d < spec_.dispatchers; ++d) {
      if (!hand_on(d)) return;
    }
    arbiter_.release(now_ns, spec_.dispatch_pkts * spec_.dispatchers, [&](const Descriptor& pkt) {
      held_[pkt.flow % spec_.dispatchers].push_back(pkt);
    });
    for (uint32_t d = 0; d < spec_.dispatchers; ++d) hand_on(d);
  }
  bool hand_on(uint32_t d) {
    std::vector<Descriptor>& held = held_[d];
    if (held.empty()) return true;
    const uint32_t n = to_send_[d]->put(held.data(), static_cast<uint32_t>(held.size()));
    held.erase(held.begin(), held.begin() + n);
    return held.empty();
  }
  void dispatch(uint32_t d) {
    pin(cpu_of(spec_.clients + d));
    std::vector<Descriptor> pkts(spec_.dispatch_pkts);
    while (true) {
      const bool is_over = is_over_.load(std::memory_order_acquire);
      const uint32_t n = to_send_[d]->take(pkts.data(), spec_.dispatch_pkts);
      for (uint32_t i = 0; i < n; ++i) sinks_[1 + d]->take(pkts[i]);
      if (n != 0) continue;
      if (is_over) return;
      std::this_thread::yield();
    }
  }

  // Each client sends at least once, however short the time is.
  template <class Mailbox>
  void send_to(Mailbox& mailbox, uint32_t c) {
    Sender sender(spec_, c);
    do {
      const std::vector<Descriptor>& pkts = sender.make();
      uint32_t done = 0;
      do {
        const uint32_t n = mailbox.put(pkts.data() + done, spec_.at_once - done);
        if (n == 0) std::this_thread::yield();
        done += n;
      } while (done < spec_.at_once && !must_stop_.load(std::memory_order_relaxed));
      sent_[c] += done;
    } while (!must_stop_.load(std::memory_order_relaxed));
  }
  void send_locked(uint32_t c) {
    Sender sender(spec_, c);
    do {
      for (const Descriptor& pkt : sender.make()) {
        lock_.lock();
        refused_pkts_ += arbiter_.discipline().enqueue(pkt) == Enqueued::kYes ? 0U : 1U;
        Descriptor out;
        if (arbiter_.discipline().dequeue(out)) sinks_[0]->take(out);
        lock_.unlock();
      }
      sent_[c] += spec_.at_once;
    } while (!must_stop_.load(std::memory_order_relaxed));
  }
  void send_alone(uint32_t c) {
    Sender sender(spec_, c);
    do {
      for (const Descriptor& pkt : sender.make()) sinks_[1 + c]->take(pkt);
      sent_[c] += spec_.at_once;
    } while (!must_stop_.load(std::memory_order_relaxed));
  }

  FlatOutResult result() const {
    uint64_t arrived = 0;
    for (const auto& sink : sinks_) arrived += sink->pkts();
    const uint64_t sent = std::accumulate(sent_.begin(), sent_.end(), uint64_t{0});
    if (arrived + refused_pkts_ != sent) throw std::runtime_error("packets were lost on the way");
    return {.took_ns = took_ns_, .released_pkts = counted_pkts_ != 0 ? counted_pkts_ : arrived};
  }

  const FlatOutSpec& spec_;
  Arbiter<D> arbiter_;
  std::vector<std::unique_ptr<Sink>> sinks_;  // of the scheduling thread, then of each other thread
  std::vector<std::unique_ptr<BatchMailbox>> to_send_;  // by dispatcher
  std::vector<std::vector<Descriptor>> held_;           // by dispatcher: packets that found no room
  std::vector<uint64_t> sent_;                          // by client
  SpinLock lock_;
  std::atomic<bool> must_stop_{false};
  std::atomic<bool> is_over_{false};
  uint64_t refused_pkts_ = 0;
  uint64_t counted_pkts_ = 0;  // released within the time
  uint64_t took_ns_ = 0;
};

}  // namespace

FlatOutResult run_flat_out(const FlatOutSpec& spec) {
  const bool is_empty = spec.flows == 0 || spec.clients == 0 || spec.at_once == 0 ||
                        spec.dispatch_pkts == 0 || spec.run_ns == 0;
  if (is_empty) throw ConfigError("nothing would be sent", "flat_out", "no size may be 0");
  FlatOutResult result;
  const bool is_known =
      with_discipline(spec.discipline, [&]<Discipline D>() { result = Run<D>(spec).run(); });
  if (!is_known) throw ConfigError("there is no scheduler '" + spec.discipline + "'", "discipline");
  return result;
}

}  // namespace batchplane::egress
