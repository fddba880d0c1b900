// SPDX-License-Identifier: BSD-3-Clause
#include "placement/plant.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace batchplane::placement {
namespace {

// An overload is reported at once, but not for every batch.
constexpr double kEventGapNs = 5e6;
constexpr double kFloodShare = 0.1;
constexpr double kNever = std::numeric_limits<double>::infinity();

double uniform(Rng& rng) { return (static_cast<double>(rng.next() >> 11) + 0.5) * 0x1p-53; }
double normal(Rng& rng) {
  return std::sqrt(-2 * std::log(uniform(rng))) * std::cos(6.283185307179586 * uniform(rng));
}

// Time until n packets have arrived, in units of the mean interval.
double gamma_time(Rng& rng, uint32_t n) {
  if (n > 30) return std::max(0.0, n + std::sqrt(n) * normal(rng));
  double sum = 0;
  for (uint32_t i = 0; i < n; ++i) sum -= std::log(uniform(rng));
  return sum;
}

// One application's batches for one device.
struct Stream {
  double began_ns = 0;       // arrival of the first packet of the filling batch, past or to come
  double ready_ns = kNever;  // when the batch is sent
  double pkts = 0;
};

class Plant {
 public:
  Plant(const PlantSpec& spec, Chooser& chooser)
      : spec_(spec),
        chooser_(chooser),
        now_(spec.truth),
        rng_(spec.seed),
        streams_(spec.truth.apps.size()),
        free_ns_(spec.truth.devices.size(), 0) {}

  std::vector<PeriodRow> run() {
    begin_period();
    decide();
    size_t next_change = 0;
    const auto end_ns = static_cast<double>(spec_.duration_ns);
    double period_end_ns = static_cast<double>(spec_.period_ns);
    while (at_ns_ < end_ns) {
      const double change_ns = next_change < spec_.changes.size()
                                   ? static_cast<double>(spec_.changes[next_change].at_ns)
                                   : kNever;
      const double stop_ns = std::min({period_end_ns, change_ns, end_ns});
      run_batches(stop_ns);
      advance(stop_ns);
      if (stop_ns == change_ns) {
        if (apply(spec_.changes[next_change++])) decide();
      } else {
        end_period();
        decide();
        begin_period();
        period_end_ns += static_cast<double>(spec_.period_ns);
      }
    }
    return std::move(rows_);
  }

 private:
  [[nodiscard]] size_t n_apps() const { return now_.apps.size(); }
  [[nodiscard]] size_t n_devices() const { return now_.devices.size(); }

  void begin_period() {
    row_ = PeriodRow{};
    row_.apps.resize(n_apps());
    row_.busy.assign(n_devices(), 0);
    period_began_ns_ = at_ns_;
    for (auto* const sums : {&pkts_, &ns_, &batches_}) sums->assign(n_apps(), {});
  }
  void end_period() {
    row_.end_ns = static_cast<uint64_t>(at_ns_);
    row_.plan = plan_;
    row_.reason = reason_;
    rows_.push_back(row_);
  }

  void decide() {
    std::vector<Seen> seen(n_apps());
    const double period_s = std::max(1e-9, (at_ns_ - period_began_ns_) * 1e-9);
    for (size_t a = 0; a < n_apps(); ++a) {
      const bool is_new = at_ns_ - period_began_ns_ < 1e6;  // nothing has been seen yet
      seen[a].rate_pps = is_new ? now_.apps[a].rate_pps : row_.apps[a].offered_pkts / period_s;
      seen[a].pkt_bytes = now_.apps[a].pkt_bytes;
      for (size_t d = 0; d < n_devices(); ++d) {
        if (batches_[a][d] > 0) {
          seen[a].batch_pkts[d] = pkts_[a][d] / batches_[a][d];
          seen[a].batch_ns[d] = ns_[a][d] / batches_[a][d];
          seen[a].batches_ps[d] = batches_[a][d] / period_s;
        }
        // The application's share of the packets that the device has before it.
        if (plan_.empty() || plan_[a].share[d] <= 0) continue;
        const double behind_ns = std::max(0.0, free_ns_[d] - at_ns_);
        seen[a].waiting_pkts += std::max(0.0, behind_ns - round_ns(d)) * 1e-9 *
                                now_.apps[a].rate_pps * plan_[a].share[d];
      }
    }
    const Decision& decision = chooser_.choose(static_cast<uint64_t>(at_ns_), now_, seen);
    decided_ns_ = at_ns_;
    reason_ = decision.reason;
    age_limit_ns_ = decision.age_limit_ns;
    if (decision.plan == plan_) return;
    plan_ = decision.plan;
    for (size_t a = 0; a < n_apps(); ++a) {
      for (size_t d = 0; d < n_devices(); ++d) restart(a, d);
    }
  }
  // Time of one batch of each application on the device.
  [[nodiscard]] double round_ns(size_t d) const {
    double sum_ns = 0;
    for (size_t a = 0; a < n_apps(); ++a) {
      if (plan_[a].share[d] > 0) sum_ns += true_busy_ns(a, d, plan_[a].batch_pkts[d]);
    }
    return sum_ns;
  }

  // The batch being filled goes on, up to its new size.
  void restart(size_t a, size_t d) {
    Stream& stream = streams_[a][d];
    if (plan_[a].share[d] <= 0 || now_.apps[a].rate_pps <= 0) {
      stream.ready_ns = kNever;
      return;
    }
    stream.began_ns = at_ns_;
    fill(a, d);
  }
  void fill(size_t a, size_t d) {
    Stream& stream = streams_[a][d];
    const double gap_ns = 1e9 / (now_.apps[a].rate_pps * plan_[a].share[d]);
    const uint32_t wanted = plan_[a].batch_pkts[d];
    const double fill_ns =
        gap_ns * (spec_.is_random ? gamma_time(rng_, wanted - 1) : static_cast<double>(wanted - 1));
    const double limit_ns = a < age_limit_ns_.size() && age_limit_ns_[a] > 0
                                ? static_cast<double>(age_limit_ns_[a])
                                : kNever;
    stream.pkts = fill_ns <= limit_ns ? wanted : std::max(1.0, 1 + limit_ns / gap_ns);
    stream.ready_ns = stream.began_ns + std::min(fill_ns, limit_ns);
  }

  [[nodiscard]] double true_ns(size_t a, size_t d, double pkts) const {
    return spec_.truth.laws[a][d].batch_time_ns(pkts, now_.apps[a].pkt_bytes) * stretch(a, d);
  }
  [[nodiscard]] double true_busy_ns(size_t a, size_t d, double pkts) const {
    return spec_.truth.laws[a][d].batch_busy_ns(pkts, now_.apps[a].pkt_bytes) * stretch(a, d);
  }
  [[nodiscard]] double stretch(size_t a, size_t d) const {
    double factor = 1;
    for (size_t b = 0; b < n_apps(); ++b) {
      double worst = 1;
      for (size_t e = 0; b != a && e < n_devices(); ++e) {
        if (plan_[b].share[e] > 0) worst = std::max(worst, now_.slowdown_of(a, d, b, e));
      }
      factor *= worst;
    }
    return factor;
  }

  void run_batches(double until_ns) {
    for (;;) {
      size_t app = 0;
      size_t device = 0;
      double first_ns = until_ns;
      for (size_t a = 0; a < n_apps(); ++a) {
        for (size_t d = 0; d < n_devices(); ++d) {
          if (streams_[a][d].ready_ns >= first_ns) continue;
          first_ns = streams_[a][d].ready_ns;
          app = a;
          device = d;
        }
      }
      if (first_ns >= until_ns) return;
      advance(first_ns);
      send(app, device);
      if (is_flooded_ && at_ns_ - decided_ns_ >= kEventGapNs) decide();
      is_flooded_ = false;
      if (plan_[app].share[device] <= 0) continue;
      Stream& stream = streams_[app][device];
      const double gap_ns = 1e9 / (now_.apps[app].rate_pps * plan_[app].share[device]);
      stream.began_ns = at_ns_ + gap_ns * (spec_.is_random ? -std::log(uniform(rng_)) : 1);
      fill(app, device);
    }
  }

  void send(size_t a, size_t d) {
    const Stream& stream = streams_[a][d];
    AppRow& row = row_.apps[a];
    const double waits_ns = std::max(0.0, free_ns_[d] - at_ns_);
    if (!now_.devices[d].is_up || waits_ns > spec_.most_backlog_ns) {
      row.lost_pkts += stream.pkts;
      is_flooded_ = true;
      return;
    }
    is_flooded_ = is_flooded_ || waits_ns > round_ns(d) + kFloodShare * now_.apps[a].budget_ns;
    const double takes_ns = true_ns(a, d, stream.pkts);
    const double busy_ns = true_busy_ns(a, d, stream.pkts);
    free_ns_[d] = at_ns_ + waits_ns + busy_ns;
    row_.busy[d] += busy_ns;
    const double fills_ns = at_ns_ - stream.began_ns;
    const double least_ns = waits_ns + takes_ns;
    const double most_ns = fills_ns + least_ns;
    const double budget_ns = now_.apps[a].budget_ns;
    const double late = most_ns <= budget_ns ? 0
                        : fills_ns <= 0      ? 1
                                             : std::min(1.0, (most_ns - budget_ns) / fills_ns);
    row.served_pkts += stream.pkts;
    row.late_pkts += late * stream.pkts;
    row.delay_sum_ns += (least_ns + fills_ns / 2) * stream.pkts;
    row.delay_max_ns = std::max(row.delay_max_ns, most_ns);
    pkts_[a][d] += stream.pkts;
    ns_[a][d] += takes_ns;
    batches_[a][d] += 1;
  }

  // Advances time: packets arrive, devices draw power.
  void advance(double to_ns) {
    const double passed_ns = to_ns - at_ns_;
    if (passed_ns <= 0) return;
    for (size_t a = 0; a < n_apps(); ++a) {
      const double pkts = now_.apps[a].rate_pps * passed_ns * 1e-9;
      row_.apps[a].offered_pkts += pkts;
      row_.apps[a].refused_pkts += pkts * std::max(0.0, 1 - plan_[a].served());
    }
    for (size_t d = 0; d < n_devices(); ++d) {
      const Device& device = now_.devices[d];
      if (!device.is_up) continue;
      bool is_used = false;
      for (const Placed& placed : plan_) is_used |= placed.share[d] > 0;
      const double works_ns = std::clamp(free_ns_[d] - at_ns_, 0.0, passed_ns);
      const double rests_ns = passed_ns - works_ns;
      row_.joules +=
          1e-9 * (works_ns * device.active_w + rests_ns * (is_used ? device.idle_w : device.off_w));
    }
    at_ns_ = to_ns;
  }

  // True when the chooser has to be asked at once.
  bool apply(const Change& change) {
    bool tells = false;
    if (change.app >= 0) {
      const auto a = static_cast<size_t>(change.app);
      if (change.rate_pps >= 0) now_.apps[a].rate_pps = change.rate_pps;
      for (uint8_t p = 0; p < 3; ++p) {
        if (change.policy != kPolicyNames[p]) continue;
        now_.apps[a].policy = static_cast<Policy>(p);
        tells = true;
      }
      for (size_t d = 0; d < n_devices(); ++d) restart(a, d);
    }
    if (change.device >= 0) {
      now_.devices[static_cast<size_t>(change.device)].is_up = change.is_up;
      free_ns_[static_cast<size_t>(change.device)] = at_ns_;
      tells = true;
    }
    if (change.watt_cap >= 0) {
      now_.watt_cap = change.watt_cap;
      tells = true;
    }
    return tells;
  }

  const PlantSpec& spec_;
  Chooser& chooser_;
  Problem now_;  // the present state
  Rng rng_;
  std::vector<std::array<Stream, kMaxDevices>> streams_;
  std::vector<double> free_ns_;
  // Of the batches finished in the period, by application and device.
  std::vector<std::array<double, kMaxDevices>> pkts_;
  std::vector<std::array<double, kMaxDevices>> ns_;
  std::vector<std::array<double, kMaxDevices>> batches_;
  Plan plan_;
  std::vector<uint64_t> age_limit_ns_;
  std::string reason_;
  double at_ns_ = 0;
  double decided_ns_ = 0;
  bool is_flooded_ = false;  // a batch waited for more than one of each application, or was lost
  double period_began_ns_ = 0;
  PeriodRow row_;
  std::vector<PeriodRow> rows_;
};

}  // namespace

std::vector<PeriodRow> run_plant(const PlantSpec& spec, Chooser& chooser) {
  return Plant(spec, chooser).run();
}

}  // namespace batchplane::placement
