// SPDX-License-Identifier: BSD-3-Clause
// problem.h - the input of placement: applications, devices, costs of each application on each
// device, and goals.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/batch_law.h"

namespace batchplane::placement {

inline constexpr uint32_t kMaxApps = 8;
inline constexpr uint32_t kMaxDevices = 6;
inline constexpr uint32_t kMaxBatchPkts = 16'384;

// The goal that an application is placed for.
enum class Policy : uint8_t {
  kThroughput,  // the most room for more traffic
  kLatency,     // the least delay
  kPower,       // the fewest watts
};
inline constexpr const char* kPolicyNames[] = {"throughput", "latency", "power"};

// Cost law of an application on a device.
struct Law {
  bool is_there = false;  // the application can run on the device
  BatchLaw batch;
  uint32_t max_batch_pkts = kMaxBatchPkts;
  bool operator==(const Law&) const = default;
  [[nodiscard]] double batch_time_ns(double n_pkts, double pkt_bytes) const {
    return batch.time_ns(n_pkts, pkt_bytes);
  }
  [[nodiscard]] double batch_busy_ns(double n_pkts, double pkt_bytes) const {
    return batch.busy_ns(n_pkts, pkt_bytes);
  }
};

struct App {
  std::string name;
  Policy policy = Policy::kPower;
  double rate_pps = 0;
  double pkt_bytes = 64;
  double budget_ns =
      1e6;           // of the flow's delay budget, what filling, waiting and the device may take
  double value = 1;  // of a packet served, for when not all can be
};

struct Device {
  std::string name;
  double off_w = 0;   // unused
  double idle_w = 0;  // in use, with nothing to do
  double active_w = 0;
  bool is_up = true;
};

struct Problem {
  std::vector<App> apps;
  std::vector<Device> devices;
  // laws[application][device]
  std::vector<std::vector<Law>> laws;
  // How many times longer a batch of a on d takes while b runs on e; [a][d][b][e]. Empty: no
  // slow-down.
  std::vector<double> slowdown;
  double watt_cap = 0;            // 0: none
  double most_utilisation = 0.9;  // of a device

  [[nodiscard]] size_t slot(size_t a, size_t d, size_t b, size_t e) const {
    return ((a * devices.size() + d) * apps.size() + b) * devices.size() + e;
  }
  [[nodiscard]] double slowdown_of(size_t a, size_t d, size_t b, size_t e) const {
    return slowdown.empty() ? 1 : slowdown[slot(a, d, b, e)];
  }
};

// Where an application's batches go: share of its packets and batch size, by device. Shares add up
// to the served share of the offered rate; the rest is refused at the entry.
struct Placed {
  std::array<double, kMaxDevices> share{};
  std::array<uint32_t, kMaxDevices> batch_pkts{};

  [[nodiscard]] double served() const {
    double sum = 0;
    for (const double s : share) sum += s;
    return sum;
  }
  bool operator==(const Placed&) const = default;
};

using Plan = std::vector<Placed>;  // by application

// The predicted result of a plan.
struct Outcome {
  // every served packet within budget, no device over-utilised, power cap kept
  bool is_feasible = false;
  double served_value =
      0;  // sum over applications of value * rate * share served, over the offered sum
  double watts = 0;
  std::vector<double> utilisation;  // by device
  std::vector<double>
      after_fill_ns;  // by application: longest time from sending a batch until it is done
  std::vector<double> delay_ns;  // by application, the longest
  double cost = 0;               // of the policies; lower is better at equal served value
};

// Batches of b packets arrive at a device irregularly because packets arrive at random: their
// interarrival times have a squared coefficient of variation of 1/b. Gives the extra wait at the
// 99th percentile, by Kingman's formula with an exponential tail.
class Jitter {
 public:
  void add(double batches_ps, double batch_ns, double pkts) {
    all_ps_ += batches_ps;
    sum_ += batches_ps * batch_ns / pkts;
  }
  [[nodiscard]] double wait_ns(double utilisation) const {
    constexpr double kTail = 4.6 / 2;  // ln(100); the factor 1/2 of Kingman's formula
    if (all_ps_ <= 0 || utilisation >= 1) return 0;
    return kTail * utilisation / (1 - utilisation) * sum_ / all_ps_;
  }

 private:
  double all_ps_ = 0;
  double sum_ = 0;
};

// By the law of batches: fill (b-1)/rate, then at most the device's time for one batch of each other application
// there, its own batch, and the wait from randomness (docs/devices.md, Placement).
[[nodiscard]] Outcome evaluate(const Problem& problem, const Plan& plan);

// Power if everything were busy: the scale for watts. Never 0.
[[nodiscard]] double most_watts(const Problem& problem);

// By application: the part of its budget that remains after one batch of each application. One of
// its own batches may wait this long to fill.
[[nodiscard]] std::vector<uint64_t> age_limits_ns(const Problem& problem, const Plan& plan,
                                                  const Outcome& outcome);

// Serving 0.1 % more of the traffic outweighs all policies.
inline constexpr double kServedWeight = 1e4;
// Lower is better: first by unserved traffic, then by the policies' cost. Infeasible plans come
// last.
[[nodiscard]] double score(const Outcome& outcome);

}  // namespace batchplane::placement
