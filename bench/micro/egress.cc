// SPDX-License-Identifier: BSD-3-Clause
// egress.cc - packet schedulers: ns per packet put in and taken out, 32 at a time, by number of flows.
//
// Saturated: every flow always has packets. Coming and going: a few packets are inside at any time,
// so nearly each one finds its flow idle and leaves it so. Sizes: 64 bytes, or 64 and 1500 in turn.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "common/environment.h"
#include "common/report.h"
#include "egress/discipline/disciplines.h"

namespace {

using namespace batchplane::egress;

constexpr uint32_t kMemoryMb = 64;
constexpr uint32_t kBatchPkts = 32;
constexpr uint32_t kPktsOfFlow = 3;
constexpr uint32_t kComing = 64;

struct Load {
  const char* name;
  bool is_saturated;
  bool is_mixed;
};
constexpr Load kLoads[] = {{"saturated, 64 B", true, false},
                           {"saturated, mixed", true, true},
                           {"coming and going, 64 B", false, false},
                           {"coming and going, mixed", false, true}};

// ns on a 2.6 GHz Xeon.
std::optional<bench::Target> target_of(std::string_view discipline, uint32_t flows) {
  const auto at_most = [](double ns) { return bench::Target{ns, true}; };
  if (discipline == "drr") return at_most(12);
  if (discipline == "qfq_plus") return at_most(flows > 10'000 ? 28 : 20);
  if (discipline == "qfq") return at_most(flows > 10'000 ? 40 : 25);
  if (discipline == "wf2q_plus" && flows <= 1'000) return at_most(flows <= 32 ? 40 : 80);
  return {};
}

template <class D>
class Scheduler {
 public:
  Scheduler(uint32_t flows, Load load)
      : flows_(flows), load_(load), rng_(flows), discipline_({flows, flows * kPktsOfFlow + 1024}) {
    for (uint32_t f = 0; f < flows; ++f) {
      discipline_.configure(f, {.weight = 1 + f % 64, .lmax_bytes = 1500});
    }
    const uint32_t inside = load.is_saturated ? flows * kPktsOfFlow : kComing;
    for (uint32_t k = 0; k < inside; ++k) {
      const uint32_t flow = load.is_saturated ? k % flows : rng_.below(flows);
      discipline_.enqueue(Descriptor::of(1, size(), flow, 0));
      ++inside_;
    }
  }

  uint64_t run(uint32_t n_batches) {
    Descriptor out[kBatchPkts];
    for (uint32_t b = 0; b < n_batches; ++b) {
      uint32_t n = 0;
      while (n < kBatchPkts && discipline_.dequeue(out[n])) ++n;
      for (uint32_t i = 0; i < n; ++i) {
        const uint32_t flow = load_.is_saturated ? out[i].flow : rng_.below(flows_);
        out[i] = Descriptor::of(1, size(), flow, 0);
        discipline_.prefetch(flow);
      }
      for (uint32_t i = 0; i < n; ++i) discipline_.enqueue(out[i]);
    }
    return uint64_t{n_batches} * kBatchPkts;
  }
  // Nothing was lost or refused.
  [[nodiscard]] std::string verify() {
    run(10);
    return discipline_.backlog_pkts() == inside_ ? "" : "packets were lost";
  }

 private:
  uint32_t size() { return load_.is_mixed && (n_made_++ & 1) != 0 ? 1500 : 64; }

  uint32_t flows_;
  Load load_;
  uint32_t n_made_ = 0;
  uint32_t inside_ = 0;
  batchplane::Rng rng_;
  D discipline_;
};

template <class D>
bench::Contender contender(std::string_view name, uint32_t flows, Load load) {
  auto scheduler = std::make_shared<Scheduler<D>>(flows, load);
  return {.name = std::string(name),
          .run = [scheduler](uint32_t n) { return scheduler->run(n); },
          .verify = [scheduler] { return scheduler->verify(); }};
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("egress", options);
  for (const uint32_t flows : {32U, 1'000U, 10'000U, 100'000U}) {
    for (const Load& load : kLoads) {
      const std::string label = std::to_string(flows) + " flows, " + load.name;
      if (!report.wants(label)) continue;
      std::vector<bench::Contender> contenders;
      for (const std::string_view name : {"drr", "qfq_plus", "qfq", "wf2q_plus"}) {
        with_discipline(
            name, [&]<Discipline D>() { contenders.push_back(contender<D>(name, flows, load)); });
      }
      const auto results = bench::run_interleaved(contenders, options.trials, options.batches);
      report.rows(label, results);
      for (const bench::Result& result : results) {
        report.figure(result.name + ", " + label, "ns", bench::time_percentile(result, 0.1),
                      target_of(result.name, flows));
      }
    }
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 60, .batches = 1000});
  return bench::guarded([&] { return run(options); });
}
