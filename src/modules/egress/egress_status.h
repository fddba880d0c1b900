// SPDX-License-Identifier: BSD-3-Clause
// egress_status.h - the status of an egress scheduler's flows and nodes: guaranteed and achieved
// rates, and backlog. A small subtree is shown completely, of a large one only the worst rows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "modules/egress/egress_book.h"
#include "modules/egress/egress_count.h"
#include "modules/egress/egress_promises.h"

namespace batchplane {

// The arguments of a `status` command.
struct EgressQuestion {
  std::string node;               // empty: the link
  uint32_t limit = 40;            // rows of flows, and rows of nodes
  bool by_wait = false;           // rank by waiting time instead of backlog
  std::vector<uint32_t> numbers;  // only these rows; empty: the worst
};
// Parses {node, limit, by, numbers}. Throws ConfigError.
EgressQuestion parse_egress_question(const Value& args);

// Control thread, while workers run.
class EgressStatus {
 public:
  EgressStatus(const EgressBook& book, const EgressScheduler& scheduler, const EgressCounts& counts,
               const EgressPromises& promises);

  // Throws ConfigError for an unknown node.
  [[nodiscard]] Dict answer(const EgressQuestion& question) const;

 private:
  // Of a flow, or summed over all flows below a node.
  struct Reading {
    uint64_t pkts = 0;
    uint64_t bytes = 0;
    uint64_t marked_pkts = 0;
    uint64_t backlog_pkts = 0;
    uint64_t backlog_bytes = 0;
    EgressCounts::Dropped dropped_pkts{};
    RecentWaits::Sums waits{};

    void add(const Reading& other);
  };
  // Sort key of rows; larger is worse.
  using Badness = std::pair<uint64_t, uint64_t>;

  void link_children();
  void sum_up();
  [[nodiscard]] bool is_flow(uint32_t n) const { return n < first_inner_; }
  [[nodiscard]] Reading read(uint32_t n) const;
  [[nodiscard]] Badness badness(uint32_t n, bool by_wait) const;
  [[nodiscard]] uint32_t index_of(const std::string& node) const;
  [[nodiscard]] std::vector<uint32_t> below(uint32_t top) const;
  [[nodiscard]] std::vector<uint32_t> worst(std::vector<uint32_t> among,
                                            const EgressQuestion& question) const;
  [[nodiscard]] Dict row(uint32_t n) const;

  const EgressScheduler& scheduler_;
  const EgressCounts& counts_;
  const EgressPromises& promises_;
  std::vector<EgressNode> nodes_;      // flows, then the link, then inner nodes
  uint32_t first_inner_ = 0;           // index of the link
  std::vector<uint32_t> place_;        // index in nodes_, by number
  std::vector<uint32_t> first_child_;  // by index in nodes_
  std::vector<uint32_t> next_sibling_;
  std::vector<uint32_t> levels_;
  std::vector<uint64_t> weights_;  // sum over its siblings of the same priority, including itself
  std::vector<Reading> inner_;     // by index - first_inner_
  std::vector<Reading> flows_;     // by index, if there are at most kMostKept flows
};

}  // namespace batchplane
