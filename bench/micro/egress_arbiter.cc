// SPDX-License-Identifier: BSD-3-Clause
// egress_arbiter.cc - decisions a second of a whole arbiter: mailbox, scheduler, null sink.
//
// A client on another core hands over packets as fast as the mailbox takes them; the link is no limit.
// --core is the arbiter's; --batches the length of a trial in ms.
#include <string>
#include <vector>

#include "common/environment.h"
#include "common/report.h"
#include "egress/arbiter/flat_out.h"

namespace {

using namespace batchplane::egress;

constexpr uint32_t kMemoryMb = 64;

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
      const FlatOutResult result = run_flat_out({.discipline = kind.discipline,
                                                 .flows = kind.flows,
                                                 .at_once = kind.at_once,
                                                 .run_ns = uint64_t{options.batches} * 1'000'000,
                                                 .arbiter_cpu = static_cast<int>(options.core),
                                                 .other_cpus = {client_cpu}});
      kind.result.ns_per_pkt.push_back(1e3 / result.mpps());
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
