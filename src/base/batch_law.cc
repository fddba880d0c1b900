// SPDX-License-Identifier: BSD-3-Clause
#include "base/batch_law.h"

#include <algorithm>

namespace batchplane {
namespace {

// The point at or below which `at` lies, so that there is one above it, and the way from it to the next. A
// share below 0 or above 1 goes on with the nearest slope.
struct Step {
  size_t index = 0;
  double share = 0;
};
Step step_to(const std::vector<uint32_t>& points, double at) {
  if (points.size() < 2) return {};
  size_t above = 1;
  while (above + 1 < points.size() && points[above] < at) ++above;
  const double below = points[above - 1];
  return {above - 1, (at - below) / (points[above] - below)};
}

}  // namespace

bool BatchLaw::operator==(const BatchLaw& other) const {
  const auto has_same_line = [&] {
    return std::ranges::all_of(
        kLawKeys, [&](const auto& part) { return this->*part.second == other.*part.second; });
  };
  const bool has_same_table = table == other.table || (table != nullptr && other.table != nullptr &&
                                                       *table == *other.table);
  return has_same_line() && has_same_table;
}

double BatchLaw::table_ns(const std::vector<double>& ns, double n_pkts, double pkt_bytes) const {
  const size_t n_lengths = table->pkt_bytes.size();
  const Step size = step_to(table->batch_pkts, n_pkts);
  const Step length = step_to(table->pkt_bytes, pkt_bytes);
  const auto row_ns = [&](size_t row) {
    const double* const at = &ns[row * n_lengths + length.index];
    return length.share == 0 ? at[0] : at[0] + length.share * (at[1] - at[0]);
  };
  const double below_ns = row_ns(size.index);
  const double at_ns =
      size.share == 0 ? below_ns : below_ns + size.share * (row_ns(size.index + 1) - below_ns);
  return std::max(0.0, at_ns);
}

double BatchLaw::busy_ns(double n_pkts, double pkt_bytes) const {
  const double alone_ns = time_ns(n_pkts, pkt_bytes);
  if (table == nullptr || table->busy_ns.empty()) return alone_ns;
  return std::min(alone_ns, table_ns(table->busy_ns, n_pkts, pkt_bytes));
}

BatchLaw BatchLaw::times(double factor) const {
  BatchLaw law{batch_ns * factor, pkt_ns * factor, byte_ns * factor, length_ns * factor};
  if (table == nullptr) return law;
  BatchTable scaled = *table;
  for (auto* const times : {&scaled.alone_ns, &scaled.busy_ns}) {
    for (double& ns : *times) ns *= factor;
  }
  law.table = std::make_shared<const BatchTable>(std::move(scaled));
  return law;
}

BatchLaw BatchLaw::plus(double more_batch_ns, double more_pkt_ns) const {
  BatchLaw law = *this;
  law.batch_ns += more_batch_ns;
  law.pkt_ns += more_pkt_ns;
  if (table == nullptr) return law;
  BatchTable longer = *table;
  for (auto* const times : {&longer.alone_ns, &longer.busy_ns}) {
    for (size_t i = 0; i < times->size(); ++i) {
      const double n_pkts = longer.batch_pkts[i / longer.pkt_bytes.size()];
      (*times)[i] += more_batch_ns + more_pkt_ns * n_pkts;
    }
  }
  law.table = std::make_shared<const BatchTable>(std::move(longer));
  return law;
}

}  // namespace batchplane
