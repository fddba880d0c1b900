// SPDX-License-Identifier: BSD-3-Clause
#include "egress/arbiter/virtual_arbiter.h"

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "egress/arbiter/arbiter.h"
#include "egress/arbiter/backpressure.h"
#include "egress/discipline/disciplines.h"

namespace batchplane::egress {
namespace {

constexpr uint64_t kNever = ~0ULL;

// Serves its rings round robin, one packet per fixed time.
class Bus {
 public:
  Bus(const VirtualSpec& spec, VirtualResult& result)
      : pkt_ns_(spec.bus_pkt_ns), ring_pkts_(spec.bus_ring_pkts), result_(result) {
    rings_.resize(spec.bus_queues);
  }
  void put(uint32_t flow, uint32_t arrival, uint64_t now_ns) {
    if (pkt_ns_ == 0) {
      result_.done_ns[arrival] = now_ns;
      return;
    }
    serve_until(now_ns);
    std::deque<uint32_t>& ring = rings_[flow % rings_.size()];
    if (ring.size() == ring_pkts_) {
      result_.fates[arrival] = Fate::kBusFull;
      return;
    }
    if (held_pkts_++ == 0) free_ns_ = std::max(free_ns_, now_ns);
    ring.push_back(arrival);
  }
  void serve_until(uint64_t now_ns) {
    while (held_pkts_ != 0 && free_ns_ <= now_ns) {
      while (rings_[next_].empty()) next_ = (next_ + 1) % rings_.size();
      free_ns_ += pkt_ns_;
      result_.done_ns[rings_[next_].front()] = free_ns_;
      rings_[next_].pop_front();
      next_ = (next_ + 1) % rings_.size();
      --held_pkts_;
    }
  }

 private:
  const uint64_t pkt_ns_;
  const uint32_t ring_pkts_;
  VirtualResult& result_;
  std::vector<std::deque<uint32_t>> rings_;
  size_t next_ = 0;
  uint64_t held_pkts_ = 0;
  uint64_t free_ns_ = 0;
};

// Hands over its packets as the real mailboxes do.
struct VirtualMailbox {
  std::deque<Descriptor> pkts;
  uint64_t next_read_ns = 0;

  uint32_t take(Descriptor* to, uint32_t most) {
    const auto n = std::min(most, static_cast<uint32_t>(pkts.size()));
    std::copy_n(pkts.begin(), n, to);
    pkts.erase(pkts.begin(), pkts.begin() + n);
    return n;
  }
  void clear() {}
};

template <Discipline D>
class VirtualRun {
 public:
  VirtualRun(const VirtualSpec& spec, const std::vector<Arrival>& arrivals)
      : spec_(spec),
        arrivals_(arrivals),
        arbiter_(
            D({static_cast<uint32_t>(spec.flows.size()), static_cast<uint32_t>(arrivals.size())}),
            Link(spec.rate_bps)),
        bus_(spec, result_),
        backpressure_(static_cast<uint32_t>(spec.flows.size())) {
    for (uint32_t f = 0; f < spec.flows.size(); ++f) {
      const Configured done = arbiter_.discipline().configure(f, spec.flows[f]);
      if (done != Configured::kYes) {
        throw ConfigError(message_of(done), "flow " + std::to_string(f));
      }
    }
    const auto most = std::ranges::max_element(spec.client_of_flow);
    mailboxes_.resize(most == spec.client_of_flow.end() ? 0 : *most + 1);
    result_.fates.resize(arrivals.size(), Fate::kSent);
    result_.release_ns.resize(arrivals.size());
    result_.done_ns.resize(arrivals.size());
  }

  VirtualResult run() {
    while (true) {
      const uint64_t begin_ns = now_ns_;
      const uint32_t n_pkts = spec_.is_immediate ? one_at_once() : round();
      if (n_pkts != 0) {
        result_.round_pkts.push_back(n_pkts);
        result_.round_took_ns.push_back(now_ns_ - begin_ns);
        continue;
      }
      const uint64_t next_ns = next_event_ns();
      if (next_ns == kNever) break;
      now_ns_ = std::max(now_ns_, next_ns);
    }
    bus_.serve_until(kNever);
    return std::move(result_);
  }

 private:
  // Puts packets that have arrived by now into their mailboxes, or refuses them there.
  void admit() {
    for (; next_ < arrivals_.size() && arrivals_[next_].at_ns <= now_ns_; ++next_) {
      const Arrival& arrival = arrivals_[next_];
      VirtualMailbox& mailbox = mailboxes_[spec_.client_of_flow[arrival.flow]];
      if (spec_.has_backpressure && backpressure_.is_full(arrival.flow)) {
        result_.fates[next_] = Fate::kShed;
        continue;
      }
      if (mailbox.pkts.size() == spec_.mailbox_pkts) {
        result_.fates[next_] = Fate::kMailboxFull;
        continue;
      }
      mailbox.pkts.push_back(
          Descriptor::of(next_ + 1, arrival.len_bytes, arrival.flow, arrival.at_ns));
    }
  }
  static uint32_t arrival_of(const Descriptor& pkt) {
    return static_cast<uint32_t>(pkt.handle() - 1);
  }
  void refuse(const Descriptor& pkt, Enqueued why) {
    result_.fates[arrival_of(pkt)] = Fate::kRefused;
    if (why == Enqueued::kFull) backpressure_.note_refused(pkt.flow, backlog_pkts(pkt.flow));
  }
  [[nodiscard]] uint32_t backlog_pkts(uint32_t flow) const {
    return arbiter_.discipline().backlog_pkts(flow);
  }
  void deliver(const Descriptor& pkt) {
    now_ns_ += spec_.release_pkt_ns;
    result_.release_ns[arrival_of(pkt)] = now_ns_;
    backpressure_.note_left(pkt.flow, backlog_pkts(pkt.flow));
    bus_.put(pkt.flow, arrival_of(pkt), now_ns_);
  }

  uint32_t round() {
    const uint64_t begin_ns = now_ns_;
    uint32_t n_pkts = 0;
    backpressure_.begin_round();
    now_ns_ += spec_.round_ns;
    for (VirtualMailbox& mailbox : mailboxes_) {
      admit();
      if (now_ns_ < mailbox.next_read_ns) continue;
      now_ns_ += spec_.mailbox_ns;
      const uint32_t n = arbiter_.take_from(
          mailbox, spec_.take_pkts, [&](const Descriptor& pkt, Enqueued why) { refuse(pkt, why); });
      now_ns_ += n * spec_.take_pkt_ns;
      n_pkts += n;
      mailbox.next_read_ns = now_ns_ + spec_.read_interval_ns;
    }
    n_pkts +=
        arbiter_.release(now_ns_, spec_.release_pkts, [&](const Descriptor& pkt) { deliver(pkt); });
    // An empty round is skipped: nothing could happen in it.
    if (n_pkts == 0) now_ns_ = begin_ns;
    return n_pkts;
  }

  // Serves the oldest of all packets that wait for the lock.
  uint32_t one_at_once() {
    admit();
    backpressure_.begin_round();
    VirtualMailbox* oldest = nullptr;
    for (VirtualMailbox& mailbox : mailboxes_) {
      if (mailbox.pkts.empty()) continue;
      if (oldest == nullptr || mailbox.pkts.front().handle() < oldest->pkts.front().handle()) {
        oldest = &mailbox;
      }
    }
    if (oldest != nullptr) {
      Descriptor pkt;
      oldest->take(&pkt, 1);
      now_ns_ += spec_.take_pkt_ns;
      arbiter_.put_in(&pkt, 1,
                      [&](const Descriptor& refused, Enqueued why) { refuse(refused, why); });
    }
    const uint32_t released =
        arbiter_.release(now_ns_, 1, [&](const Descriptor& pkt) { deliver(pkt); });
    return released + (oldest == nullptr ? 0 : 1);
  }

  [[nodiscard]] uint64_t next_event_ns() const {
    uint64_t next_ns = next_ < arrivals_.size() ? arrivals_[next_].at_ns : kNever;
    if (arbiter_.discipline().backlog_pkts() != 0) {
      next_ns = std::min(next_ns, arbiter_.link().free_at_ns());
    }
    for (const VirtualMailbox& mailbox : mailboxes_) {
      if (!mailbox.pkts.empty()) next_ns = std::min(next_ns, mailbox.next_read_ns);
    }
    // Time moves on by at least 1 ns, even for a past event.
    return next_ns == kNever || next_ns > now_ns_ ? next_ns : now_ns_ + 1;
  }

  const VirtualSpec& spec_;
  const std::vector<Arrival>& arrivals_;
  Arbiter<D> arbiter_;
  VirtualResult result_;
  Bus bus_;
  Backpressure backpressure_;
  std::vector<VirtualMailbox> mailboxes_;
  size_t next_ = 0;  // index of the next arrival
  uint64_t now_ns_ = 0;
};

void check(const VirtualSpec& spec, const std::vector<Arrival>& arrivals) {
  const auto fail = [](const std::string& what, const std::string& where) {
    throw ConfigError(what, where);
  };
  if (spec.client_of_flow.size() != spec.flows.size()) fail("each flow has a client", "clients");
  if (spec.mailbox_pkts == 0) fail("a mailbox holds something", "mailbox_pkts");
  if (spec.take_pkts == 0 || spec.release_pkts == 0) fail("a round does something", "release_pkts");
  if (spec.bus_queues == 0) fail("a bus has a queue", "bus_queues");
  for (size_t k = 0; k < arrivals.size(); ++k) {
    if (k != 0 && arrivals[k].at_ns < arrivals[k - 1].at_ns) {
      fail("arrivals go back in time", "arrival " + std::to_string(k));
    }
    if (arrivals[k].flow >= spec.flows.size()) {
      fail("there is no such flow", "arrival " + std::to_string(k));
    }
  }
}

}  // namespace

VirtualResult run_virtual(const VirtualSpec& spec, const std::vector<Arrival>& arrivals) {
  check(spec, arrivals);
  VirtualResult result;
  const bool is_known = with_discipline(
      spec.discipline, [&]<Discipline D>() { result = VirtualRun<D>(spec, arrivals).run(); });
  if (!is_known) throw ConfigError("there is no scheduler '" + spec.discipline + "'", "discipline");
  return result;
}

}  // namespace batchplane::egress
