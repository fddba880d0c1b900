// SPDX-License-Identifier: BSD-3-Clause
// egress_arbiter.cc - decisions a second of a whole arbiter: mailbox, scheduler, null sink.
//
// A client on another core hands over packets as fast as the mailbox takes them; the link is no limit.
// --core is the arbiter's; --batches the length of a trial in ms.
#include <pthread.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "common/environment.h"
#include "common/report.h"
#include "egress/arbiter/arbiter.h"
#include "egress/arbiter/batch_mailbox.h"
#include "egress/arbiter/slot_mailbox.h"
#include "egress/discipline/disciplines.h"

namespace {

using namespace batchplane::egress;

constexpr uint32_t kMemoryMb = 64;
constexpr uint32_t kMailboxPkts = 1024;
constexpr uint32_t kTakePkts = 128;
constexpr uint32_t kReleasePkts = 512;

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

// Puts packets of all flows in turn, `at_once` at a time.
template <class Mailbox>
void send(Mailbox& mailbox, uint32_t flows, uint32_t at_once, std::atomic<bool>& is_stopped,
          uint64_t& sent) {
  std::vector<Descriptor> pkts(at_once);
  uint32_t flow = 0;
  while (!is_stopped.load(std::memory_order_relaxed)) {
    for (Descriptor& pkt : pkts) {
      pkt = Descriptor::of(1, 60, flow, 0);
      flow = flow + 1 == flows ? 0 : flow + 1;
    }
    uint32_t done = 0;
    while (done < at_once && !is_stopped.load(std::memory_order_relaxed)) {
      done += mailbox.put(pkts.data() + done, at_once - done);
    }
    sent += done;
  }
}

struct Kind {
  std::string discipline;
  uint32_t flows;
  uint32_t at_once;
  bench::Result result = {};
  [[nodiscard]] std::string label() const {
    return discipline + ", " + std::to_string(flows) + " flows, handed over " +
           (at_once == 1 ? "singly" : std::to_string(at_once) + " at a time");
  }
};

template <Discipline D, class Mailbox>
double trial(const Kind& kind, uint64_t run_ns, int client_cpu) {
  Arbiter<D> arbiter(D({kind.flows, 4 * kMailboxPkts}), Link{});
  for (uint32_t f = 0; f < kind.flows; ++f) arbiter.discipline().configure(f, {.lmax_bytes = 60});
  Mailbox mailbox(kMailboxPkts);
  std::atomic<bool> is_stopped{false};
  uint64_t sent = 0;
  std::thread client([&] {
    pin(client_cpu);
    send(mailbox, kind.flows, kind.at_once, is_stopped, sent);
  });
  const batchplane::TscClock& clock = batchplane::TscClock::instance();
  uint64_t refused = 0;
  uint64_t checksum = 0;
  const auto round = [&](uint64_t now_ns) {
    arbiter.take_from(mailbox, kTakePkts, [&](const Descriptor&, Enqueued) { ++refused; });
    arbiter.release(now_ns, kReleasePkts, [&](const Descriptor& pkt) { checksum += pkt.handle(); });
  };
  const uint64_t start_ns = clock.now_ns();
  uint64_t now_ns = start_ns;
  for (; now_ns - start_ns < run_ns; now_ns = clock.now_ns()) round(now_ns);
  const double mpps = static_cast<double>(arbiter.counts().released_pkts) * 1e3 /
                      static_cast<double>(now_ns - start_ns);
  is_stopped.store(true, std::memory_order_relaxed);
  client.join();
  while (!mailbox.is_empty()) round(now_ns);
  if (checksum + refused != sent) throw std::runtime_error("packets were lost on the way");
  return mpps;
}

double run_kind(const Kind& kind, uint64_t run_ns, int client_cpu) {
  double mpps = 0;
  with_discipline(kind.discipline, [&]<Discipline D>() {
    mpps = kind.at_once == 1 ? trial<D, SlotMailbox>(kind, run_ns, client_cpu)
                             : trial<D, BatchMailbox>(kind, run_ns, client_cpu);
  });
  return mpps;
}

std::optional<bench::Target> target_of(const Kind& kind) {
  const auto at_least = [](double mpps) { return bench::Target{mpps, false}; };
  if (kind.at_once == 1) return at_least(35);
  if (kind.discipline == "drr") return at_least(60);
  if (kind.discipline != "qfq_plus") return {};
  return at_least(kind.flows <= 32 ? 50 : kind.flows <= 1'000 ? 42 : 30);
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("egress_arbiter", options);
  std::vector<Kind> kinds;
  for (const uint32_t flows : {32U, 1'000U, 100'000U}) {
    for (const char* discipline : {"drr", "qfq_plus", "qfq"}) {
      kinds.push_back({discipline, flows, 32});
    }
  }
  kinds.push_back({"qfq_plus", 1'000, 1});
  const int client_cpu = options.core == 0 ? 1 : 0;
  for (uint32_t t = 0; t < options.trials; ++t) {
    for (Kind& kind : kinds) {
      if (!report.wants(kind.label())) continue;
      const double mpps = run_kind(kind, uint64_t{options.batches} * 1'000'000, client_cpu);
      kind.result.ns_per_pkt.push_back(1e3 / mpps);
    }
  }
  for (const Kind& kind : kinds) {
    if (kind.result.ns_per_pkt.empty()) continue;
    const bench::Interval ns = bench::time_percentile(kind.result, 0.1);
    report.figure(kind.label(), "M decisions/s", {1e3 / ns.median, 1e3 / ns.high, 1e3 / ns.low},
                  target_of(kind));
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 40, .batches = 20});
  return bench::guarded([&] { return run(options); });
}
