// SPDX-License-Identifier: BSD-3-Clause
#include "egress/arbiter/replay.h"

#include "base/error.h"
#include "egress/arbiter/arbiter.h"
#include "egress/discipline/disciplines.h"

namespace batchplane::egress {
namespace {

template <Discipline D>
class Replay {
 public:
  Replay(const std::vector<FlowParams>& params, const std::vector<Arrival>& arrivals, Link link)
      : arrivals_(arrivals),
        arbiter_(D({static_cast<uint32_t>(params.size()), static_cast<uint32_t>(arrivals.size())}),
                 link) {
    for (uint32_t flow = 0; flow < params.size(); ++flow) {
      const Configured done = arbiter_.discipline().configure(flow, params[flow]);
      if (done == Configured::kYes) continue;
      throw ConfigError(message_of(done), "flow " + std::to_string(flow));
    }
    result_.departures.reserve(arrivals.size());
  }

  ReplayResult run() {
    uint64_t now_ns = 0;
    while (next_ < arrivals_.size() || arbiter_.discipline().backlog_pkts() != 0) {
      if (arbiter_.discipline().backlog_pkts() == 0) {
        now_ns = std::max(now_ns, arrivals_[next_].at_ns);
      }
      now_ns = std::max(now_ns, arbiter_.link().free_at_ns());
      take_until(now_ns);
      // One at a time: a packet that arrives while another is on the link may be the next.
      arbiter_.release(now_ns, 1, [&](const Descriptor& pkt) {
        result_.departures.push_back({now_ns, pkt.flow, pkt.len_bytes()});
      });
    }
    return std::move(result_);
  }

 private:
  void take_until(uint64_t now_ns) {
    for (; next_ < arrivals_.size() && arrivals_[next_].at_ns <= now_ns; ++next_) {
      const Arrival& arrival = arrivals_[next_];
      if (next_ != 0 && arrival.at_ns < arrivals_[next_ - 1].at_ns) {
        throw ConfigError("arrivals go back in time", "arrival " + std::to_string(next_),
                          "sort them by time");
      }
      const Descriptor pkt = Descriptor::of(next_, arrival.len_bytes, arrival.flow, arrival.at_ns);
      arbiter_.put_in(&pkt, 1, [this](const Descriptor&, Enqueued) {
        result_.refused.push_back(static_cast<uint32_t>(next_));
      });
    }
  }

  const std::vector<Arrival>& arrivals_;
  size_t next_ = 0;
  Arbiter<D> arbiter_;
  ReplayResult result_;
};

}  // namespace

ReplayResult replay(const std::string& discipline, const std::vector<FlowParams>& params,
                    const std::vector<Arrival>& arrivals, uint64_t rate_bps,
                    uint32_t overhead_bytes) {
  ReplayResult result;
  const bool is_known = with_discipline(discipline, [&]<Discipline D>() {
    result =
        Replay<D>(params, arrivals,
                  Link(rate_bps, Framing{.overhead_bytes = static_cast<int32_t>(overhead_bytes)}))
            .run();
  });
  if (!is_known) throw ConfigError("unknown discipline '" + discipline + "'", "discipline");
  return result;
}

}  // namespace batchplane::egress
